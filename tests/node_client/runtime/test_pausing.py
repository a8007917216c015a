"""A pausing node finishes what others wait for, closes its connection, and resumes by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
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


def pause_node(settings: Settings) -> None:
    settings.state.path.mkdir(exist_ok=True)
    request_pause(settings.state, now=datetime.now(UTC), until=None)


class EventWaiter:
    """Waits for events of a view."""

    def __init__(self, view: NodeView) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        view.listeners = [self._events.put_nowait]

    async def wait_for(self, kind: type[Event]) -> None:
        async with asyncio.timeout(20):
            while not isinstance(await self._events.get(), kind):
                pass


@dataclass
class Scene:
    """A running node, with its coordinator, view and the events of the view."""

    coordinator: Coordinator
    view: NodeView
    events: EventWaiter


@asynccontextmanager
async def running_scene(settings: Settings, verifier: Verifier) -> AsyncIterator[Scene]:
    view = empty_view()
    events = EventWaiter(view)
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(settings, coordinator, verifier, view=view),
    ):
        yield Scene(coordinator, view, events)


async def wait_until_closed(coordinator: Coordinator) -> int | None:
    async with asyncio.timeout(20):
        return await coordinator.close_code()


async def test_paused_node_saves_and_closes_its_connection(
    settings: Settings, verifier: Verifier
) -> None:
    async with running_scene(settings, verifier) as scene:
        await scene.coordinator.wait_for(ReportTraining)
        pause_node(settings)
        assert await wait_until_closed(scene.coordinator) == CloseCode.GOING_AWAY
        await scene.events.wait_for(Paused)
        made = scene.view.steps_this_run
        [newest, *_] = newest_first(settings.state.checkpoints)
        assert newest.name == f"step-{made:08d}"
        await asyncio.sleep(0.1)
        assert scene.view.steps_this_run == made


async def test_node_resumes_its_training_after_the_pause(
    settings: Settings, verifier: Verifier
) -> None:
    async with running_scene(settings, verifier) as scene:
        await scene.coordinator.wait_for(ReportTraining)
        pause_node(settings)
        await scene.events.wait_for(Paused)
        coordinator = scene.coordinator
        steps = [each.step for each in coordinator.received if isinstance(each, ReportTraining)]
        last = steps[-1]
        withdraw_pause(settings.state)
        await coordinator.wait_for(Hello, count=2)
        reports = await coordinator.wait_for(
            ReportTraining, where=lambda message: message.step > last
        )
    assert reports[0].step <= last + 3
    assert scene.view.paused is None


async def test_open_round_is_answered_before_the_pause(
    settings: Settings, verifier: Verifier
) -> None:
    async with running_scene(settings, verifier) as scene:
        coordinator = scene.coordinator
        await coordinator.wait_for(ReportTraining)
        coordinator.round = open_round(questions=40)
        await coordinator.ring(RoundState(None, coordinator.round, now()))
        await scene.events.wait_for(RoundChanged)
        pause_node(settings)
        await scene.events.wait_for(Paused)
        assert len(coordinator.answers) == 40


async def test_node_started_in_a_pause_does_not_connect_until_its_end(
    settings: Settings, verifier: Verifier
) -> None:
    pause_node(settings)
    async with running_scene(settings, verifier) as scene:
        await scene.events.wait_for(Paused)
        await asyncio.sleep(0.1)
        assert scene.coordinator.headers == []
        withdraw_pause(settings.state)
        await scene.coordinator.wait_for(ReportTraining)


async def test_paused_node_stops_immediately(settings: Settings, verifier: Verifier) -> None:
    pause_node(settings)
    async with running_scene(settings, verifier) as scene:
        await scene.events.wait_for(Paused)
    assert scene.view.steps_this_run == 0


async def test_base_node_pauses_too(settings: Settings, verifier: Verifier) -> None:
    async with running_scene(replace(settings, arm="base"), verifier) as scene:
        await scene.coordinator.wait_for(Hello)
        pause_node(settings)
        assert await wait_until_closed(scene.coordinator) == CloseCode.GOING_AWAY
        withdraw_pause(settings.state)
        await scene.coordinator.wait_for(Hello, count=2)


def pauses_at(
    moment: datetime, settings: Settings, *, view: NodeView | None = None, battery: bool = False
) -> Pauses:
    settings.state.path.mkdir(exist_ok=True)
    return Pauses(
        settings, view=view or empty_view(), now=lambda: moment, on_battery=lambda: battery
    )


@pytest.mark.parametrize(("moment", "paused"), [(NOON, True), (MIDNIGHT, False)])
def test_node_pauses_outside_its_hours(
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


@pytest.mark.parametrize(("enabled", "battery"), [(True, True), (True, False), (False, True)])
def test_node_pauses_on_battery_only_if_configured(
    settings: Settings, enabled: bool, battery: bool
) -> None:
    chosen = replace(settings, pause_on_battery=enabled)
    due = pauses_at(NOON, chosen, battery=battery).due()
    assert (due is not None) == (enabled and battery)


def test_pause_of_limited_duration_ends_by_itself(settings: Settings) -> None:
    settings.state.path.mkdir(exist_ok=True)
    request_pause(settings.state, now=NOON, until=NOON + timedelta(hours=2))
    assert pauses_at(NOON + timedelta(minutes=119), settings).due() is not None
    assert pauses_at(NOON + timedelta(minutes=120), settings).due() is None


def test_damaged_pause_file_is_a_pause_without_an_end(settings: Settings) -> None:
    settings.state.path.mkdir(exist_ok=True)
    (settings.state.path / "pause.json").write_text("{")
    due = pauses_at(NOON, settings).due()
    assert due is not None
    assert (due.reason, due.until) == ("asked", None)
