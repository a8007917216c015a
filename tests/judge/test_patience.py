"""A node whose answers are slow to grade delays only its own answers."""

import pytest

from judge.models import Answer, Round, Score, Seat
from judge.services import grading
from judge.services.patience import BUDGET_S, POSTPONE_AFTER_S, POSTPONED
from judge.services.scores import write_scores
from tests.judge.toys import OPEN_S, SCORING_S, Site


@pytest.fixture
def judge_round(site: Site) -> Round:
    """An open round in which amber's answers are slow to grade and birch's are not."""
    site.join("amber", "birch")
    judge_round = site.answer(amber="rsss", birch="----")
    site.clock.advance(1)
    site.submit(judge_round, "birch", "rwww")
    return judge_round


def verdicts(site: Site, name: str) -> list[str]:
    answers = Answer.objects.filter(node=site.nodes[name]).order_by("question__position")
    return list(answers.values_list("verdict", flat=True))


def cost(site: Site, name: str) -> float:
    return Seat.objects.get(node=site.nodes[name]).grading_seconds


def test_slow_answers_are_postponed_and_the_others_graded(site: Site, judge_round: Round) -> None:
    site.grade()
    assert verdicts(site, "birch") == ["right", "wrong", "wrong", "wrong"]
    assert verdicts(site, "amber") == ["right", POSTPONED, POSTPONED, POSTPONED]


def test_slow_answers_are_charged_to_their_own_node(site: Site, judge_round: Round) -> None:
    site.grade()
    assert cost(site, "amber") == 3 * POSTPONE_AFTER_S
    assert cost(site, "birch") == 0


def test_a_slow_nodes_answers_wait_until_no_others_do(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "BATCH", 2)
    seat = Seat.objects.filter(node=site.nodes["amber"])
    seat.update(grading_seconds=POSTPONE_AFTER_S)
    while "" in verdicts(site, "birch"):
        site.grade()
    assert set(verdicts(site, "amber")) == {POSTPONED}
    assert not any(text.startswith("amber") for text in site.toy.seen)


def test_a_postponed_answer_gets_the_full_deadline(site: Site, judge_round: Round) -> None:
    seat = Seat.objects.filter(node=site.nodes["amber"])
    seat.update(grading_seconds=POSTPONE_AFTER_S)
    site.grade()
    assert site.grade() == 1
    assert verdicts(site, "amber") == ["right", POSTPONED, POSTPONED, POSTPONED]
    assert site.grade() == 1
    assert verdicts(site, "amber") == ["right", "timeout", POSTPONED, POSTPONED]


def test_answers_of_a_node_over_budget_time_out(site: Site, judge_round: Round) -> None:
    site.grade()
    Seat.objects.filter(node=site.nodes["amber"]).update(grading_seconds=BUDGET_S)
    before = site.toy.seen.total()
    assert site.grade() == 3
    assert site.toy.seen.total() == before
    assert verdicts(site, "amber") == ["right", "timeout", "timeout", "timeout"]
    assert site.grade() == 0


def test_every_slow_node_gets_a_turn(site: Site, judge_round: Round) -> None:
    """One answer of each node at a time, so that none waits for all answers of another."""
    Seat.objects.update(grading_seconds=POSTPONE_AFTER_S)
    site.grade()
    assert site.grade() == 2
    assert verdicts(site, "birch").count(POSTPONED) == 3
    assert verdicts(site, "amber").count(POSTPONED) == 3


def test_answers_postponed_until_the_round_closes_count_as_wrong(
    site: Site, judge_round: Round
) -> None:
    """Otherwise a node could get questions excluded that it cannot answer."""
    site.grade()
    site.advance(OPEN_S + SCORING_S)
    assert verdicts(site, "amber") == ["right", "timeout", "timeout", "timeout"]
    score = Score.objects.get(node=site.nodes["amber"])
    assert (score.correct, score.n, score.reason) == (1, 4, "")


def test_answers_locked_when_the_round_closes_count_as_wrong_and_time_out_later(
    site: Site, judge_round: Round
) -> None:
    site.grade()
    site.advance(OPEN_S + SCORING_S)
    locked = Answer.objects.filter(verdict="timeout")
    locked.update(score=None, solved=None, verdict=POSTPONED)
    write_scores(judge_round)
    score = Score.objects.get(node=site.nodes["amber"])
    assert (score.correct, score.n, score.reason) == (1, 4, "")
    assert site.grade() == 3
    assert verdicts(site, "amber") == ["right", "timeout", "timeout", "timeout"]


def test_an_answer_that_was_not_started_stays_pending_at_no_cost(
    site: Site, judge_round: Round
) -> None:
    site.toy.in_time = False
    assert site.grade() == 0
    assert set(verdicts(site, "amber")) == {""}
    assert cost(site, "amber") == 0
