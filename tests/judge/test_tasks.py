"""What beat triggers moves rounds through their whole life, and finds lost work again."""

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
from judge.selectors.seasons import seasons_with_books
from judge.services import grading
from judge.services.scheduling import LEAD
from judge.services.seasons import end_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.verifier import DrawnTask
from swarm_web import heartbeat
from swarm_web.store import sync_redis
from tests.judge.toys import OPEN_S, SCORING_S, Site, ToyVerifier


class DrawingNothing(ToyVerifier):
    """A verifier that can draw no question."""

    def draw(self, **_: object) -> DrawnTask:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "no child")


@pytest.fixture(autouse=True)
def stopped_clock(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tasks read the test's clock and use its verifier."""
    monkeypatch.setattr("judge.tasks.timezone.now", lambda: site.clock.now)
    monkeypatch.setattr(tasks, "process_verifier", lambda: site.toy)


@pytest.fixture(autouse=True)
def empty_queue() -> Iterator[None]:
    """Begin and end without tasks that wait for a worker."""
    sync_redis().delete("celery")
    yield
    sync_redis().delete("celery")


def queued() -> list[str]:
    """Return the names of the tasks that wait for a worker."""
    messages = cast("list[bytes]", sync_redis().lrange("celery", 0, -1))
    return [json.loads(message)["headers"]["task"] for message in messages]


def phases() -> list[str]:
    return list(Round.objects.order_by("number").values_list("phase", flat=True))


def answered_round(site: Site) -> Round:
    """Return an open round that amber answered, three of four rightly."""
    site.join("amber")
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rrrw")
    return judge_round


# ---- ticks


def test_ticks_alone_lead_a_round_from_schedule_to_the_leaderboard(site: Site) -> None:
    site.join("amber")
    tasks.tick_rounds()
    assert phases() == ["scheduled"]
    site.clock.advance(LEAD.total_seconds())
    tasks.tick_rounds()
    assert phases() == ["open"]
    judge_round = Round.objects.get()
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rrrw")
    tasks.grade_answers()
    tasks.tick_rounds()
    assert phases() == ["closed", "scheduled"]
    assert Score.objects.get().correct == 3
    assert Standing.objects.filter(window="season").get().correct == 3


def test_a_tick_that_comes_twice_changes_nothing_more(site: Site) -> None:
    site.join("amber")
    for seconds in (0, LEAD.total_seconds(), OPEN_S, SCORING_S):
        site.clock.advance(seconds)
        tasks.tick_rounds()
        before = (phases(), Score.objects.count(), Standing.objects.count())
        tasks.tick_rounds()
        assert (phases(), Score.objects.count(), Standing.objects.count()) == before


def test_a_tick_that_cannot_draw_questions_still_moves_the_rounds_that_are_due(
    site: Site,
) -> None:
    answered_round(site)
    assert site.advance()
    assert phases() == ["scoring"]
    site.toy = DrawingNothing()
    site.clock.advance(OPEN_S + SCORING_S)
    with pytest.raises(RefusedError):
        tasks.tick_rounds()
    assert phases() == ["closed"]


def test_a_tick_leaves_a_sign_of_life(site: Site) -> None:
    tasks.tick_rounds()
    assert heartbeat.read_ages(now=site.clock.now)[heartbeat.Part.CLOCK] == pytest.approx(0)


def test_the_first_tick_after_an_outage_gives_the_time_back_before_it_moves_rounds(
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


def test_a_tick_reads_for_how_long_no_web_process_was_ready(
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


def test_without_a_running_season_a_tick_finishes_what_is_open_and_makes_nothing(
    site: Site,
) -> None:
    site.open()
    end_season(site.season, now=site.clock.now)
    site.clock.advance(OPEN_S)
    tasks.tick_rounds()
    assert phases() == ["closed"]


# ---- grading


def test_grading_goes_on_until_nothing_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    answered_round(site)
    monkeypatch.setattr(grading, "BATCH", 1)
    tasks.grade_answers()
    assert not Answer.objects.filter(score=None).exists()
    assert queued() == []


def test_grading_that_takes_long_leaves_the_rest_to_another_task(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered_round(site)
    monkeypatch.setattr(grading, "BATCH", 1)
    monkeypatch.setattr(tasks, "GRADING_S", -1.0)
    tasks.grade_answers()
    assert Answer.objects.filter(score=None).count() == 3
    assert queued() == [tasks.grade_answers.name]


# ---- books


def test_the_books_let_rounds_leave_windows_although_no_round_closes(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    end_season(site.season, now=site.clock.now)
    site.clock.advance(86_400)
    tasks.keep_books()
    assert site.board("24h") == {}
    assert set(site.board("7d")) == {"amber"}
    site.clock.advance(6 * 86_400)
    tasks.keep_books()
    assert site.board("7d") == {}
    assert set(site.board()) == {"amber"}


def test_the_books_find_a_closed_round_whose_refresh_was_lost(site: Site) -> None:
    site.end(answered_round(site))
    assert site.board() == {}
    tasks.keep_books()
    assert site.board()["amber"].correct == 3


@pytest.mark.slow
def test_the_books_of_a_season_that_ended_long_ago_are_written_anew_where_they_are_missing(
    site: Site,
) -> None:
    """An update that keeps answers in another way begins with empty books."""
    site.join("amber", "birch")
    for _ in range(8):
        site.hold(amber="rrrr", birch="wwww")
    end_season(site.season, now=site.clock.now)
    site.clock.advance(30 * 86_400)
    Ledger.objects.all().delete()
    Counted.objects.all().delete()
    Round.objects.update(stream_at=None)
    Standing.objects.all().delete()
    tasks.keep_books()
    assert {name: (row.rank_low, row.n) for name, row in site.board().items()} == {
        "amber": (1, 32),
        "birch": (2, 32),
    }
    assert list(seasons_with_books(now=site.clock.now)) == []


def test_closed_rounds_are_inspected(site: Site) -> None:
    judge_round = site.end(answered_round(site))
    tasks.keep_books()
    judge_round.refresh_from_db()
    assert judge_round.inspected_at == site.clock.now
    assert not Flag.objects.exists()


@pytest.mark.slow
def test_stale_summaries_are_written_anew_by_one_task_after_another(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    site.play(amber="rrrr")
    RoundSummary.objects.update(stale=True)
    monkeypatch.setattr(tasks, "RENEWAL_S", -1.0)
    for left in (1, 0, 0):
        tasks.keep_books()
        assert RoundSummary.objects.filter(stale=True).count() == left


# ---- recomputing


@pytest.mark.parametrize("known", [True, False])
def test_recomputing_is_on_record_with_who_asked_for_it(site: Site, known: bool) -> None:
    judge_round = site.end(answered_round(site))
    olive = User.objects.create_user("olive") if known else None
    tasks.recompute(judge_round.pk, "a doubt", olive.pk if olive else None)
    ruling = Ruling.objects.get()
    assert (ruling.reason, ruling.actor, ruling.round) == ("a doubt", olive, judge_round)


def test_every_task_of_the_schedule_exists(settings: Any) -> None:
    names = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    mine = {
        task.name
        for task in (tasks.tick_rounds, tasks.draw_rounds, tasks.grade_answers, tasks.keep_books)
    }
    assert mine <= names
    schedule = settings.CELERY_BEAT_SCHEDULE["tick-rounds"]["schedule"]
    assert timedelta(seconds=schedule) == TICK
