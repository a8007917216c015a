"""A node whose answers are slow to grade delays its own answers and nobody else's."""

import pytest

from judge.models import Answer, Round, Score, Seat
from judge.services import grading
from judge.services.patience import BUDGET_S, PATIENCE_S, PUT_OFF
from judge.services.scores import write_scores
from tests.judge.toys import OPEN_S, SCORING_S, Site


@pytest.fixture
def judge_round(site: Site) -> Round:
    """An open round in which amber sent answers on which the verifier hangs, and birch did not."""
    site.join("amber", "birch")
    judge_round = site.open("amber", "birch")
    site.sit(judge_round, "amber", "birch")
    site.hand_in(judge_round, "amber", "rsss")
    site.clock.advance(1)
    site.hand_in(judge_round, "birch", "rwww")
    return judge_round


def verdicts(site: Site, name: str) -> list[str]:
    answers = Answer.objects.filter(node=site.nodes[name]).order_by("question__position")
    return list(answers.values_list("verdict", flat=True))


def cost(site: Site, name: str) -> float:
    return Seat.objects.get(node=site.nodes[name]).grading_seconds


def test_answers_that_take_too_long_are_put_off_and_the_others_graded(
    site: Site, judge_round: Round
) -> None:
    site.grade()
    assert verdicts(site, "birch") == ["right", "wrong", "wrong", "wrong"]
    assert verdicts(site, "amber") == ["right", PUT_OFF, PUT_OFF, PUT_OFF]


def test_slow_answers_are_charged_to_their_own_node(site: Site, judge_round: Round) -> None:
    site.grade()
    assert cost(site, "amber") == 3 * PATIENCE_S
    assert cost(site, "birch") == 0


def test_a_node_that_was_slow_waits_until_no_other_does(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "BATCH", 2)
    seat = Seat.objects.filter(node=site.nodes["amber"])
    seat.update(grading_seconds=PATIENCE_S)
    while "" in verdicts(site, "birch"):
        site.grade()
    assert set(verdicts(site, "amber")) == {PUT_OFF}
    assert not any(text.startswith("amber") for text in site.toy.seen)


def test_an_answer_that_was_put_off_has_the_whole_deadline_at_the_end(
    site: Site, judge_round: Round
) -> None:
    seat = Seat.objects.filter(node=site.nodes["amber"])
    seat.update(grading_seconds=PATIENCE_S)
    site.grade()
    assert site.grade() == 1
    assert verdicts(site, "amber") == ["right", PUT_OFF, PUT_OFF, PUT_OFF]
    assert site.grade() == 1
    assert verdicts(site, "amber") == ["right", "timeout", PUT_OFF, PUT_OFF]


def test_a_node_whose_budget_is_spent_times_out_unread(site: Site, judge_round: Round) -> None:
    site.grade()
    Seat.objects.filter(node=site.nodes["amber"]).update(grading_seconds=BUDGET_S)
    before = site.toy.seen.total()
    assert site.grade() == 3
    assert site.toy.seen.total() == before
    assert verdicts(site, "amber") == ["right", "timeout", "timeout", "timeout"]
    assert site.grade() == 0


def test_every_slow_node_has_its_turn(site: Site, judge_round: Round) -> None:
    """One answer of each node at a time, so that none waits for all answers of another."""
    Seat.objects.update(grading_seconds=PATIENCE_S)
    site.grade()
    assert site.grade() == 2
    assert verdicts(site, "birch").count(PUT_OFF) == 3
    assert verdicts(site, "amber").count(PUT_OFF) == 3


def test_what_is_put_off_when_the_round_closes_counts_as_wrong(
    site: Site, judge_round: Round
) -> None:
    """Else a node could have the questions left out that it cannot answer."""
    site.grade()
    site.advance(OPEN_S + SCORING_S)
    assert verdicts(site, "amber") == ["right", "timeout", "timeout", "timeout"]
    score = Score.objects.get(node=site.nodes["amber"])
    assert (score.correct, score.n, score.reason) == (1, 4, "")


def test_what_a_worker_holds_when_the_round_closes_is_wrong_and_times_out_later(
    site: Site, judge_round: Round
) -> None:
    site.grade()
    site.advance(OPEN_S + SCORING_S)
    held = Answer.objects.filter(verdict="timeout")
    held.update(score=None, solved=None, verdict=PUT_OFF)
    write_scores(judge_round)
    score = Score.objects.get(node=site.nodes["amber"])
    assert (score.correct, score.n, score.reason) == (1, 4, "")
    assert site.grade() == 3
    assert verdicts(site, "amber") == ["right", "timeout", "timeout", "timeout"]


def test_an_answer_that_was_not_reached_in_time_waits_and_costs_nothing(
    site: Site, judge_round: Round
) -> None:
    site.toy.in_time = False
    assert site.grade() == 0
    assert set(verdicts(site, "amber")) == {""}
    assert cost(site, "amber") == 0
