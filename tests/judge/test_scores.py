"""A closed round has one score for each seat."""

import pytest

from judge.models import Answer, Enrolment, Round, Score, Season
from judge.services.answers import take_seat
from judge.services.scores import write_scores
from judge.services.seasons import enrol
from swarm_protocol.errors import RefusedError
from swarm_record.stats import effective_n, macro_interval
from swarm_web.nodes.models import Node
from tests.judge.toys import OPEN_S, SCORING_S, Site

Reason, Status = Score.Reason, Score.Status


def score_of(judge_round: Round, name: str) -> Score:
    return Score.objects.get(round=judge_round, node__name=name)


def bits(packed: bytes | memoryview) -> str:
    """Return the bits of the first four questions."""
    return f"{bytes(packed)[0]:08b}"[:4]


# ---- the score


def test_a_score_is_the_mean_over_datasets_of_the_share_solved(site: Site) -> None:
    site.join("amber")
    score = score_of(site.hold(amber="rrww"), "amber")
    assert score.cells == {"chain_sum": [2, 3], "gcd": [0, 1]}
    assert (score.correct, score.n) == (2, 4)
    assert score.score == pytest.approx((2 / 3 + 0) / 2)
    assert (score.status, score.reason) == (Status.SCORED, Reason.NONE)


def test_a_score_has_the_interval_of_a_macro_score(site: Site) -> None:
    site.join("amber")
    score = score_of(site.hold(amber="rwwr"), "amber")
    assert score.score is not None
    expected = macro_interval(score.score, effective_n({"chain_sum": (1, 3), "gcd": (1, 1)}))
    assert (score.interval_low, score.interval_high) == expected


def test_a_score_stores_which_questions_counted_and_which_were_solved(site: Site) -> None:
    site.join("amber")
    score = score_of(site.hold(amber="rw-r"), "amber")
    assert (bits(score.answered), bits(score.solved)) == ("1111", "1001")


def test_a_score_stores_the_model_and_arm_at_that_time(site: Site) -> None:
    site.join("amber", model="old")
    enrol(site.nodes["amber"], site.season, preferred="isolated")
    judge_round = site.hold(amber="rrrr")
    Node.objects.update(model="new")
    Enrolment.objects.update(arm="swarm")
    write_scores(judge_round)
    score = score_of(judge_round, "amber")
    assert (score.model, score.arm) == ("old", "isolated")


def test_a_node_that_is_not_enrolled_is_scored_in_its_declared_arm(site: Site) -> None:
    site.join("amber", arm="base")
    assert score_of(site.hold(amber="rrrr"), "amber").arm == "base"


# ---- reasons for reduced scores and absences


def test_unanswered_questions_are_wrong_with_the_reason(site: Site) -> None:
    site.join("amber")
    score = score_of(site.hold(amber="rr--"), "amber")
    assert (score.correct, score.n) == (2, 4)
    assert score.score == pytest.approx(1 / 3)
    assert (score.status, score.reason) == (Status.SCORED, Reason.UNANSWERED)


def test_a_node_that_answers_no_offered_question_scores_zero(site: Site) -> None:
    site.join("amber")
    score = score_of(site.hold(amber="----"), "amber")
    assert (score.score, score.n, score.reason) == (0.0, 4, Reason.UNANSWERED)


def test_ungraded_answers_are_excluded_with_the_reason(site: Site) -> None:
    site.toy.broken = {"gcd"}
    site.join("amber")
    judge_round = site.hold(amber="rrwr")
    site.advance(SCORING_S)
    score = score_of(judge_round, "amber")
    assert score.cells == {"chain_sum": [2, 3]}
    assert (score.n, score.reason) == (3, Reason.UNSCORED)
    assert score.score == pytest.approx(2 / 3)
    assert (bits(score.answered), bits(score.solved)) == ("1110", "1100")


def test_unanswered_questions_are_wrong_and_ungraded_ones_excluded(site: Site) -> None:
    site.toy.broken = {"gcd"}
    site.join("amber")
    judge_round = site.hold(amber="r--r")
    site.advance(SCORING_S)
    score = score_of(judge_round, "amber")
    assert (score.correct, score.n, score.reason) == (1, 3, Reason.UNSCORED)


def test_a_question_not_graded_for_one_node_counts_for_none(site: Site) -> None:
    site.join("amber", "birch", "coral")
    judge_round = site.answer(amber="rrrw", birch="r---", coral="----")
    site.advance(OPEN_S)
    site.grade()
    Answer.objects.filter(node=site.nodes["amber"], question__position=1).update(
        score=None, solved=None, verdict=""
    )
    site.advance(SCORING_S)
    assert [score_of(judge_round, name).n for name in ("amber", "birch", "coral")] == [3, 3, 3]
    assert [score_of(judge_round, name).correct for name in ("amber", "birch")] == [2, 0]
    assert score_of(judge_round, "coral").reason == Reason.UNSCORED


def test_a_node_without_graded_answers_is_absent_with_the_reason(
    site: Site,
) -> None:
    site.join("amber")
    judge_round = site.answer(amber="rrrr")
    site.advance(1)
    site.advance(OPEN_S + SCORING_S)
    score = score_of(judge_round, "amber")
    assert (score.status, score.n, score.score) == (Status.ABSENT, 0, None)
    assert score.reason == Reason.UNSCORED


def test_a_node_that_never_requested_the_questions_is_absent(site: Site) -> None:
    site.join("idle")
    score = score_of(site.end(site.open("idle")), "idle")
    assert (score.status, score.n, score.score) == (Status.ABSENT, 0, None)
    assert score.reason == Reason.NOT_OFFERED


def sit_one_of_two(site: Site, *, owner: str) -> Score:
    """Play a round in which vera's amber answers and idle does not; return idle's score."""
    site.join("amber", "idle")
    site.own("vera", "amber")
    site.own(owner, "idle")
    judge_round = site.answer("idle", amber="rrrr")
    return score_of(site.end(judge_round), "idle")


def test_a_node_whose_owner_saw_the_questions_declined_them(site: Site) -> None:
    score = sit_one_of_two(site, owner="vera")
    assert (score.status, score.n, score.reason) == (Status.ABSENT, 0, Reason.DECLINED)


def test_a_node_of_another_owner_is_absent(site: Site) -> None:
    assert sit_one_of_two(site, owner="sam").reason == Reason.NOT_OFFERED


def test_no_node_declines_questions_that_its_owner_never_requested(site: Site) -> None:
    site.join("amber", "idle")
    site.own("vera", "amber", "idle")
    score = score_of(site.end(site.open("amber", "idle")), "idle")
    assert score.reason == Reason.NOT_OFFERED


def test_a_late_node_is_absent_with_the_reason(site: Site) -> None:
    judge_round = site.open()
    site.join("late")
    with pytest.raises(RefusedError):
        site.sit(judge_round, "late")
    score = score_of(site.end(judge_round), "late")
    assert (score.status, score.reason) == (Status.ABSENT, Reason.CAME_LATE)


def test_a_node_that_joined_late_is_scored_like_the_others(site: Site) -> None:
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    judge_round = site.open()
    (late,) = site.join("late")
    take_seat(late, number=judge_round.number, now=site.clock.advance(10))
    site.submit(judge_round, "late", "rrrr")
    assert score_of(site.end(judge_round), "late").score == 1


# ---- deviations


def test_a_deviation_is_measured_from_the_mean_of_the_same_model(site: Site) -> None:
    site.join("amber", "birch", model="small")
    site.join("coral", model="large")
    judge_round = site.hold(amber="rrrr", birch="wwww", coral="wwww")
    deviations = {s.node.name: s.deviation for s in judge_round.scores.select_related("node")}
    assert deviations == {"amber": 0.5, "birch": -0.5, "coral": 0.0}


def test_untrained_and_absent_nodes_have_no_deviation_and_do_not_affect_the_mean(
    site: Site,
) -> None:
    site.join("amber", "birch")
    site.join("bare", arm="base")
    judge_round = site.open("amber", "birch", "bare")
    for name, letters in (("amber", "rrrr"), ("bare", "wwww")):
        site.sit(judge_round, name)
        site.submit(judge_round, name, letters)
    site.end(judge_round)
    deviations = {s.node.name: s.deviation for s in judge_round.scores.select_related("node")}
    assert deviations == {"amber": 0.0, "bare": None, "birch": None}


# ---- written once


def test_writing_scores_again_replaces_them(site: Site) -> None:
    site.join("amber")
    judge_round = site.hold(amber="rrww")
    write_scores(judge_round)
    assert Score.objects.get().correct == 2
