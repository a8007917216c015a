"""A closed round has one honest score for each seat."""

import pytest

from judge.models import Round, Score
from judge.selectors import rank_nodes
from judge.services.answers import score_answers, submit_answers, take_seat
from judge.services.rounds import end_answering, void_round
from judge.services.scores import close_scored_rounds
from judge.stats import wilson_interval
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from tests.judge.conftest import Clock, answers_to, connect_node


def sit(name: str, judge_round: Round, clock: Clock, *, right: int, answered: int = 4) -> Node:
    """Take a seat and answer the first questions; grading is left to the test."""
    node = connect_node(name, clock)
    take_seat(node, number=judge_round.number, now=clock.now)
    if answered:
        submit_answers(
            node,
            number=judge_round.number,
            answers=answers_to(judge_round, right=right)[:answered],
            now=clock.now,
        )
    return node


def grade_all(judge_round: Round, verifier: Verifier) -> None:
    ids = [a.pk for q in judge_round.questions.all() for a in q.answers.all()]
    score_answers(ids, verifier=verifier)


def test_a_score_is_the_share_of_right_answers_with_its_interval(
    open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    sit("amber", open_round, clock, right=3)
    grade_all(open_round, verifier)
    end_answering(now=clock.advance(1))
    close_scored_rounds(now=clock.now)
    score = Score.objects.get()
    assert (score.correct, score.n, score.score, score.status) == (3, 4, 0.75, "scored")
    assert (score.interval_low, score.interval_high) == pytest.approx(wilson_interval(3, 4))


def test_unanswered_questions_count_as_wrong_with_the_reason(
    open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    sit("amber", open_round, clock, right=2, answered=2)
    grade_all(open_round, verifier)
    end_answering(now=clock.advance(60))
    close_scored_rounds(now=clock.now)
    score = Score.objects.get()
    assert (score.correct, score.n, score.reason) == (2, 4, Score.Reason.UNANSWERED)


def test_a_node_that_never_took_the_questions_is_absent_not_wrong(
    open_round: Round, clock: Clock
) -> None:
    node = connect_node("idle", clock)
    open_round.seats.create(node=node)
    end_answering(now=clock.advance(60))
    close_scored_rounds(now=clock.now)
    score = Score.objects.get()
    assert (score.status, score.n, score.score) == ("absent", 0, None)
    assert score.reason == Score.Reason.NOT_OFFERED


def test_a_round_waits_for_grading_until_its_limit(
    open_round: Round, clock: Clock, season: object
) -> None:
    sit("amber", open_round, clock, right=4)
    end_answering(now=clock.advance(1))
    assert close_scored_rounds(now=clock.now) == []
    open_round.refresh_from_db()
    assert len(close_scored_rounds(now=open_round.score_by)) == 1
    assert Score.objects.get().reason == Score.Reason.UNSCORED


def test_a_second_tick_writes_no_second_score(
    open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    sit("amber", open_round, clock, right=4)
    grade_all(open_round, verifier)
    end_answering(now=clock.advance(1))
    close_scored_rounds(now=clock.now)
    assert close_scored_rounds(now=clock.now) == []
    assert Score.objects.count() == 1


def test_nodes_that_cannot_be_told_apart_share_a_rank(
    open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    sit("amber", open_round, clock, right=3)
    sit("birch", open_round, clock, right=2)
    grade_all(open_round, verifier)
    end_answering(now=clock.advance(1))
    close_scored_rounds(now=clock.now)
    rows = rank_nodes(open_round.season, "season", now=clock.now)
    assert [(row.rank, row.score) for row in rows] == [((1, 2), 0.75), ((1, 2), 0.5)]


def test_voiding_a_closed_round_takes_it_out_of_the_ranking(
    open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    sit("amber", open_round, clock, right=4)
    grade_all(open_round, verifier)
    end_answering(now=clock.advance(1))
    close_scored_rounds(now=clock.now)
    void_round(open_round, reason="wrong mix", now=clock.now)
    assert rank_nodes(open_round.season, "season", now=clock.now) == []
