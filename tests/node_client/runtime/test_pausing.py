"""A node that pauses finishes what others wait for, says goodbye, and comes back by itself."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from websockets.frames import CloseCode

from node_client.display.events import Event, Paused, RoundChanged
from node_client.display.view import NodeView
from node_client.runtime.pausing import Pauses
from node_client.settings.config import Settings
from node_client.storage.checkpoint import newest_first
from node_client.storage.pauses import request_pause, withdraw_pause
from swarm_protocol.messages import Hello, ReportTraining, RoundState
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, now, open_round, running
from tests.node_client.fakes import toy_season
from tests.node_client.runtime.nodes import running_node
from tests.node_client.shell_fakes import empty_view

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MIDNIGHT = NOON.replace(hour=0)


def ask_for_pause(settings: Settings) -> None:
    settings.state.path.mkdir(exist_ok=True)
    request_pause(settings.state, now=datetime.now(UTC), until=None)


class Ear:
    """Waits for what a view tells."""

    def __init__(self, view: NodeView) -> None:
        self._heard: asyncio.Queue[Event] = asyncio.Queue()
        view.emit = self._heard.put_nowait

    async def hear(self, kind: type[Event]) -> None:
        async with asyncio.timeout(20):
            while not isinstance(await self._heard.get(), kind):
                pass


async def farewell(coordinator: Coordinator) -> int | None:
    async with asyncio.timeout(20):
        return await coordinator.farewell()


async def test_a_paused_node_saves_and_says_goodbye(settings: Settings, verifier: Verifier) -> None:
    view = empty_view()
    ear = Ear(view)
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(settings, coordinator, verifier, view=view),
    ):
        await coordinator.heard(ReportTraining)
        ask_for_pause(settings)
        assert await farewell(coordinator) == CloseCode.GOING_AWAY
        await ear.hear(Paused)
        made = view.steps_this_run
        [newest, *_] = newest_first(settings.state.checkpoints)
        assert newest.name == f"step-{made:08d}"
        await asyncio.sleep(0.1)
        assert view.steps_this_run == made


async def test_a_node_goes_on_where_it_was_when_the_pause_is_over(
    settings: Settings, verifier: Verifier
) -> None:
    view = empty_view()
    ear = Ear(view)
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(settings, coordinator, verifier, view=view),
    ):
        await coordinator.heard(ReportTraining)
        ask_for_pause(settings)
        await ear.hear(Paused)
        [last] = [said.step for said in coordinator.said if isinstance(said, ReportTraining)][-1:]
        withdraw_pause(settings.state)
        await coordinator.heard(Hello, count=2)
        reports = await coordinator.heard(ReportTraining, where=lambda said: said.step > last)
    assert reports[0].step <= last + 3
    assert view.paused is None


async def test_a_round_that_is_open_is_answered_before_the_pause(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    ear = Ear(view)
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.heard(ReportTraining)
        coordinator.round = open_round(questions=40)
        await coordinator.ring(RoundState(None, coordinator.round, now()))
        await ear.hear(RoundChanged)
        ask_for_pause(settings)
        await ear.hear(Paused)
        assert len(coordinator.answers) == 40


async def test_a_node_that_starts_in_a_pause_stays_away_until_it_is_over(
    settings: Settings, verifier: Verifier
) -> None:
    ask_for_pause(settings)
    view = empty_view()
    ear = Ear(view)
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(settings, coordinator, verifier, view=view),
    ):
        await ear.hear(Paused)
        await asyncio.sleep(0.1)
        assert coordinator.headers == []
        withdraw_pause(settings.state)
        await coordinator.heard(ReportTraining)


async def test_a_paused_node_stops_at_once(settings: Settings, verifier: Verifier) -> None:
    ask_for_pause(settings)
    view = empty_view()
    ear = Ear(view)
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(settings, coordinator, verifier, view=view),
    ):
        await ear.hear(Paused)
    assert view.steps_this_run == 0


async def test_an_untrained_node_pauses_too(settings: Settings, verifier: Verifier) -> None:
    base = replace(settings, arm="base")
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(base, coordinator, verifier),
    ):
        await coordinator.heard(Hello)
        ask_for_pause(settings)
        assert await farewell(coordinator) == CloseCode.GOING_AWAY
        withdraw_pause(settings.state)
        await coordinator.heard(Hello, count=2)


def pauses_at(
    moment: datetime, settings: Settings, *, view: NodeView | None = None, battery: bool = False
) -> Pauses:
    settings.state.path.mkdir(exist_ok=True)
    return Pauses(
        settings, view=view or empty_view(), now=lambda: moment, on_battery=lambda: battery
    )


@pytest.mark.parametrize(("moment", "paused"), [(NOON, True), (MIDNIGHT, False)])
def test_a_node_pauses_outside_its_hours(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, moment: datetime, paused: bool
) -> None:
    local = moment.astimezone()
    hours = f"{(local.hour + 11) % 24}-{(local.hour + 13) % 24}"
    if not paused:
        hours = f"{(local.hour - 1) % 24}-{(local.hour + 1) % 24}"
    due = pauses_at(moment, replace(settings, hours=hours)).due()
    assert (due is not None) == paused
    if due is not None:
        assert due.until == moment + timedelta(hours=11)


@pytest.mark.parametrize(("heeds", "battery"), [(True, True), (True, False), (False, True)])
def test_a_node_pauses_on_battery_if_it_was_told_to(
    settings: Settings, heeds: bool, battery: bool
) -> None:
    chosen = replace(settings, pause_on_battery=heeds)
    due = pauses_at(NOON, chosen, battery=battery).due()
    assert (due is not None) == (heeds and battery)


def test_a_pause_of_some_hours_ends_by_itself(settings: Settings) -> None:
    settings.state.path.mkdir(exist_ok=True)
    request_pause(settings.state, now=NOON, until=NOON + timedelta(hours=2))
    assert pauses_at(NOON + timedelta(minutes=119), settings).due() is not None
    assert pauses_at(NOON + timedelta(minutes=120), settings).due() is None


def test_a_damaged_wish_is_a_pause_without_an_end(settings: Settings) -> None:
    settings.state.path.mkdir(exist_ok=True)
    (settings.state.path / "pause.json").write_text("{")
    due = pauses_at(NOON, settings).due()
    assert due is not None
    assert (due.reason, due.until) == ("asked", None)
