"""Rounds are made, opened, ended and voided, each exactly once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from judge.models import Question, Round, Season
from judge.services.rounds import (
    LEAD,
    end_answering,
    ensure_next_round,
    open_due_rounds,
    schedule_round,
    void_round,
)
from judge.services.seasons import end_season, pause_season, resume_season
from swarm_tasks.keyspace import Part, index_part, question_part
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.services import leave
from tests.judge.conftest import Clock, connect_node


def test_questions_come_from_the_judges_part_of_the_key_space(
    open_round: Round,
) -> None:
    for question in open_round.questions.all():
        assert index_part(question.spec["index"]) is Part.JUDGE
        assert question_part(question.prompt) is Part.JUDGE


def test_two_rounds_ask_different_questions(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    for _ in range(2):
        schedule_round(season, opens_at=clock.now + LEAD, now=clock.now, verifier=verifier)
    first, second = (set(r.questions.values_list("prompt", flat=True)) for r in Round.objects.all())
    assert first != second


def test_a_round_opens_at_its_time_and_not_before(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    schedule_round(season, opens_at=clock.now + LEAD, now=clock.now, verifier=verifier)
    assert open_due_rounds(now=clock.now) == []
    assert len(open_due_rounds(now=clock.advance(LEAD.total_seconds()))) == 1


def test_a_second_tick_opens_nothing_again(open_round: Round, clock: Clock) -> None:
    assert open_due_rounds(now=clock.now) == []


def test_a_round_that_opens_late_keeps_its_whole_answering_time(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    schedule_round(season, opens_at=clock.now + LEAD, now=clock.now, verifier=verifier)
    (opened,) = open_due_rounds(now=clock.advance(500))
    assert (opened.closes_at - clock.now).total_seconds() == season.open_seconds


def test_connected_nodes_are_invited_and_others_not(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    connect_node("here", clock)
    connect_node("gone", clock)
    schedule_round(season, opens_at=clock.now + LEAD, now=clock.now, verifier=verifier)
    clock.advance(100)
    connect_node("fresh", clock)
    (opened,) = open_due_rounds(now=clock.now)
    assert set(opened.seats.values_list("node__name", flat=True)) == {"fresh"}


def test_a_node_that_is_reconnecting_is_invited(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    node = connect_node("back-soon", clock)
    leave(node.pk, now=clock.advance(1))
    schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)
    (opened,) = open_due_rounds(now=clock.advance(5))
    assert opened.seats.get().node == node


def test_answering_ends_at_the_deadline(open_round: Round, clock: Clock) -> None:
    assert end_answering(now=clock.advance(59)) == []
    assert [r.phase for r in end_answering(now=clock.advance(1))] == [Round.Phase.SCORING]


def test_two_beats_at_once_open_a_round_once(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    connect_node("one", clock)
    schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)

    def tick() -> int:
        try:
            return len(open_due_rounds(now=clock.now))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        opened = sum(future.result() for future in [pool.submit(tick) for _ in range(4)])
    assert opened == 1
    assert Round.objects.get().seats.count() == 1


def test_a_season_schedules_its_next_round_by_its_cadence(
    season: Season, clock: Clock, open_round: Round, verifier: Verifier
) -> None:
    assert ensure_next_round(season, now=clock.now, verifier=verifier) is None
    end_answering(now=clock.advance(60))
    following = ensure_next_round(season, now=clock.now, verifier=verifier)
    assert following is not None
    assert (following.opens_at - open_round.opens_at).total_seconds() == season.cadence_seconds


def test_a_paused_season_opens_no_round_until_resumed(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)
    pause_season(season)
    assert open_due_rounds(now=clock.now) == []
    resume_season(season)
    assert len(open_due_rounds(now=clock.now)) == 1


def test_ending_a_season_drops_rounds_that_never_opened(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)
    end_season(season, now=clock.now)
    assert not Round.objects.exists()


def test_a_void_round_stays_void(open_round: Round, clock: Clock) -> None:
    assert void_round(open_round, reason="wrong mix", now=clock.now)
    assert not void_round(open_round, reason="again", now=clock.now)
    assert end_answering(now=clock.advance(600)) == []
    open_round.refresh_from_db()
    assert (open_round.phase, open_round.void_reason) == (Round.Phase.VOID, "wrong mix")


def test_the_database_refuses_two_open_rounds_of_a_season(
    season: Season, open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    other = schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.filter(pk=other.pk).update(phase=Round.Phase.OPEN)


def test_the_database_refuses_phases_out_of_order(open_round: Round) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.filter(pk=open_round.pk).update(closes_at=open_round.opens_at)


def test_the_database_refuses_two_questions_at_one_position(open_round: Round) -> None:
    first = open_round.questions.get(position=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Question.objects.create(
            round=open_round, position=1, dataset="gcd", spec=first.spec, prompt="?"
        )
