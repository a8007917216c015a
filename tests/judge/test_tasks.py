"""Celery tasks: ticks take rounds through all phases, and sweeps find lost work."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pytest
from django.contrib.auth.models import User

from judge import tasks
from judge.engine import TICK
from judge.models import (
    Answer,
    Counted,
    Flag,
    Ledger,
    Round,
    RoundSummary,
    Ruling,
    Score,
    Standing,
)
from judge.selectors.seasons import seasons_to_refresh
from judge.services import grading
from judge.services.scheduling import LEAD_TIME
from judge.services.seasons import end_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.verifier import DrawnTask
from swarm_web.core import heartbeat
from swarm_web.core.store import sync_redis
from swarm_web.maintenance.models import RETURN_TIME
from swarm_web.maintenance.selectors import latest_maintenance
from swarm_web.maintenance.services import begin_maintenance, end_maintenance
from tests.judge.toys import OPEN_S, SCORING_S, Site, ToyVerifier


class UndrawableVerifier(ToyVerifier):
    """A verifier that cannot draw questions."""

    def draw(self, **_: object) -> DrawnTask:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "no child")


@pytest.fixture(autouse=True)
def stopped_clock(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tasks use the test's clock and verifier."""
    monkeypatch.setattr("judge.tasks.timezone.now", lambda: site.clock.now)
    monkeypatch.setattr(tasks, "process_verifier", lambda: site.toy)


@pytest.fixture(autouse=True)
def empty_queue() -> Iterator[None]:
    """Empty the task queue before and after."""
    sync_redis().delete("celery")
    yield
    sync_redis().delete("celery")


def queued() -> list[str]:
    """Return the names of the tasks in the queue."""
    messages = cast("list[bytes]", sync_redis().lrange("celery", 0, -1))
    return [json.loads(message)["headers"]["task"] for message in messages]


def phases() -> list[str]:
    return list(Round.objects.order_by("number").values_list("phase", flat=True))


def answered_round(site: Site) -> Round:
    """Return an open round that amber answered, three of four correctly."""
    site.join("amber")
    judge_round = site.answer(amber="rrrw")
    return judge_round


# ---- ticks


def test_ticks_alone_take_a_round_from_schedule_to_leaderboard(site: Site) -> None:
    site.join("amber")
    tasks.tick_rounds()
    assert phases() == ["scheduled"]
    site.clock.advance(LEAD_TIME.total_seconds())
    tasks.tick_rounds()
    assert phases() == ["open"]
    judge_round = Round.objects.get()
    site.sit(judge_round, "amber")
    site.submit(judge_round, "amber", "rrrw")
    tasks.grade_answers()
    tasks.tick_rounds()
    assert phases() == ["closed", "scheduled"]
    assert Score.objects.get().correct == 3
    assert Standing.objects.filter(window="season").get().correct == 3


def test_a_repeated_tick_changes_nothing(site: Site) -> None:
    site.join("amber")
    for seconds in (0, LEAD_TIME.total_seconds(), OPEN_S, SCORING_S):
        site.clock.advance(seconds)
        tasks.tick_rounds()
        before = (phases(), Score.objects.count(), Standing.objects.count())
        tasks.tick_rounds()
        assert (phases(), Score.objects.count(), Standing.objects.count()) == before


def test_a_tick_that_cannot_draw_questions_still_advances_due_rounds(
    site: Site,
) -> None:
    answered_round(site)
    assert site.advance()
    assert phases() == ["scoring"]
    site.toy = UndrawableVerifier()
    site.clock.advance(OPEN_S + SCORING_S)
    with pytest.raises(RefusedError):
        tasks.tick_rounds()
    assert phases() == ["closed"]


class Pulse:
    """A web process's heartbeat beside the judge's clock; it stops during maintenance."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._left_at = site.clock.now

    def tick_for(self, seconds: float) -> list[str]:
        """Run both for some seconds, and return the phases of all rounds."""
        clock = self._site.clock
        for _ in range(int(seconds)):
            clock.advance(1)
            latest = latest_maintenance(now=clock.now)
            if latest is None or not latest.counts_as_outage(now=clock.now):
                self._left_at = clock.now
            left = heartbeat._EXPIRY - (clock.now - self._left_at)
            sync_redis().set(heartbeat._WEB_KEY, 1, px=left)
            tasks.tick_rounds()
        return phases()


@pytest.fixture
def pulse(site: Site) -> Iterator[Pulse]:
    yield Pulse(site)
    sync_redis().delete(heartbeat._WEB_KEY)


def test_no_round_opens_during_maintenance_and_one_does_after_it(site: Site, pulse: Pulse) -> None:
    site.join("amber")
    assert pulse.tick_for(1) == ["scheduled"]
    begin_maintenance(message="", until=None, now=site.clock.now)
    assert pulse.tick_for(2 * LEAD_TIME.total_seconds()) == ["scheduled"]
    end_maintenance(now=site.clock.now)
    assert pulse.tick_for(RETURN_TIME.total_seconds() - 1) == ["scheduled"]
    assert pulse.tick_for(RETURN_TIME.total_seconds())[0] == "open"


def test_an_open_round_is_extended_by_the_time_of_a_maintenance(site: Site, pulse: Pulse) -> None:
    judge_round = site.open()
    pulse.tick_for(1)
    closes_at = judge_round.closes_at
    begin_maintenance(message="", until=None, now=site.clock.now)
    assert pulse.tick_for(OPEN_S + 5)[0] == "open"
    end_maintenance(now=site.clock.now)
    assert pulse.tick_for(RETURN_TIME.total_seconds() + 1)[0] == "open"
    judge_round.refresh_from_db()
    assert judge_round.closes_at - closes_at > timedelta(seconds=OPEN_S + 5) + RETURN_TIME


def test_a_tick_stamps_the_clocks_heartbeat(site: Site) -> None:
    tasks.tick_rounds()
    assert heartbeat.read_ages(now=site.clock.now)[heartbeat.SitePart.CLOCK] == pytest.approx(0)


def test_the_first_tick_after_an_outage_extends_deadlines_before_it_advances_rounds(
    site: Site,
) -> None:
    judge_round = site.open()
    tasks.tick_rounds()
    site.clock.advance(TICK.total_seconds() + 1000)
    tasks.tick_rounds()
    before = judge_round.closes_at
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.OPEN
    assert judge_round.closes_at - before == timedelta(seconds=1000)


def test_a_tick_extends_deadlines_by_the_silence_of_the_web_processes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_round = site.open()
    tasks.tick_rounds()
    site.clock.advance(4)
    monkeypatch.setattr(heartbeat, "web_silence", lambda: timedelta(seconds=4))
    tasks.tick_rounds()
    before = judge_round.closes_at
    judge_round.refresh_from_db()
    assert judge_round.closes_at - before == timedelta(seconds=4 + 10)


def test_a_tick_without_a_running_season_only_finishes_open_rounds(
    site: Site,
) -> None:
    site.open()
    end_season(site.season, now=site.clock.now)
    site.clock.advance(OPEN_S)
    tasks.tick_rounds()
    assert phases() == ["closed"]


# ---- grading


def test_grading_continues_until_no_answer_is_pending(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered_round(site)
    monkeypatch.setattr(grading, "BATCH", 1)
    tasks.grade_answers()
    assert not Answer.objects.filter(score=None).exists()
    assert queued() == []


def test_long_grading_leaves_the_rest_to_another_task(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered_round(site)
    monkeypatch.setattr(grading, "BATCH", 1)
    monkeypatch.setattr(tasks, "GRADING_BUDGET_S", -1.0)
    tasks.grade_answers()
    assert Answer.objects.filter(score=None).count() == 3
    assert queued() == [tasks.grade_answers.name]


# ---- standings


def test_rounds_leave_windows_without_a_closing_round(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    end_season(site.season, now=site.clock.now)
    site.clock.advance(86_400)
    tasks.update_standings()
    assert site.board("24h") == {}
    assert set(site.board("7d")) == {"amber"}
    site.clock.advance(6 * 86_400)
    tasks.update_standings()
    assert site.board("7d") == {}
    assert set(site.board()) == {"amber"}


def test_rounds_leave_the_7_day_window_of_an_ended_season_even_after_a_long_outage(
    site: Site,
) -> None:
    site.end(answered_round(site))
    tasks.update_standings()
    end_season(site.season, now=site.clock.now)
    site.clock.advance(9 * 86_400)
    tasks.update_standings()
    assert site.board("7d") == {}
    assert list(seasons_to_refresh()) == []


def test_a_closed_round_whose_refresh_was_lost_is_found(site: Site) -> None:
    site.end(answered_round(site))
    assert site.board() == {}
    tasks.update_standings()
    assert site.board()["amber"].correct == 3


@pytest.mark.slow
def test_missing_ledgers_of_a_season_that_ended_long_ago_are_rebuilt(
    site: Site,
) -> None:
    """An update of the site that changes the format of ledgers starts with empty ones."""
    site.join("amber", "birch")
    for _ in range(8):
        site.hold(amber="rrrr", birch="wwww")
    end_season(site.season, now=site.clock.now)
    site.clock.advance(30 * 86_400)
    Ledger.objects.all().delete()
    Counted.objects.all().delete()
    Round.objects.update(stream_at=None)
    Standing.objects.all().delete()
    tasks.update_standings()
    assert {name: (row.rank_low, row.n) for name, row in site.board().items()} == {
        "amber": (1, 32),
        "birch": (2, 32),
    }
    assert list(seasons_to_refresh()) == []


def test_closed_rounds_are_inspected(site: Site) -> None:
    judge_round = site.end(answered_round(site))
    tasks.update_standings()
    judge_round.refresh_from_db()
    assert judge_round.inspected_at == site.clock.now
    assert not Flag.objects.exists()


@pytest.mark.slow
def test_stale_summaries_are_rebuilt_by_one_task_after_another(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    site.play(amber="rrrr")
    RoundSummary.objects.update(stale=True)
    monkeypatch.setattr(tasks, "REBUILD_BUDGET_S", -1.0)
    for left in (1, 0, 0):
        tasks.update_standings()
        assert RoundSummary.objects.filter(stale=True).count() == left


# ---- recomputing


@pytest.mark.parametrize("known", [True, False])
def test_recomputing_records_who_requested_it(site: Site, known: bool) -> None:
    judge_round = site.end(answered_round(site))
    olive = User.objects.create_user("olive") if known else None
    tasks.recompute(judge_round.pk, "a doubt", olive.pk if olive else None)
    ruling = Ruling.objects.get()
    assert (ruling.reason, ruling.actor, ruling.round) == ("a doubt", olive, judge_round)


def test_every_task_of_the_schedule_exists(settings: Any) -> None:
    names = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    judge_tasks = {
        task.name
        for task in (
            tasks.tick_rounds,
            tasks.draw_rounds,
            tasks.grade_answers,
            tasks.update_standings,
        )
    }
    assert judge_tasks <= names
    schedule = settings.CELERY_BEAT_SCHEDULE["tick-rounds"]["schedule"]
    assert timedelta(seconds=schedule) == TICK
