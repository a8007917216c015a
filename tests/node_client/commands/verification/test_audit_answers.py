"""Whether the answers of a round are worth what is published of them."""

import copy
from typing import Any

import pytest

from node_client.commands.verification.checks import NAMED, CheckOutcome
from swarm_tasks.verifier import Verifier
from tests.node_client.commands.verification.auditing import (
    ABSENT,
    HOLDS,
    audit,
    differing,
    outcomes,
)
from tests.node_client.commands.verification.rounds import (
    Published,
)

# ---- the answers


def test_another_text_is_found_out(published: Published, verifier: Verifier) -> None:
    published.answers_of("able-owl")[2]["text"] = "<answer>999</answer>"
    checks = audit(published, verifier)
    [difference] = checks["answers"].differences.first
    assert difference.where == "answer of able-owl to question 3"
    assert difference.published == "1.0, solved, right"
    assert difference.ours == "0.0, not solved, wrong"
    assert outcomes(published, verifier) == differing("answers")


@pytest.mark.parametrize(
    "change", [{"solved": True}, {"score": 0.5}, {"verdict": "right"}, {"verdict": None}]
)
def test_another_verdict_is_found_out(
    published: Published, verifier: Verifier, change: dict[str, Any]
) -> None:
    [wrong] = [each for each in published.answers if each["verdict"] == "no_answer"]
    wrong.update(change)
    assert outcomes(published, verifier)["answers"] is CheckOutcome.DIFFERS


def test_a_flipped_result_does_not_fit_the_score_either(
    published: Published, verifier: Verifier
) -> None:
    published.answers_of("able-owl")[0]["solved"] = False
    assert outcomes(published, verifier) == differing("answers", "scores")


def test_an_answer_with_half_a_verdict_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    published.answers_of("able-owl")[0]["score"] = None
    assert outcomes(published, verifier)["answers"] is CheckOutcome.DIFFERS


def test_a_right_answer_that_is_left_out_as_not_graded_does_not_fit_the_score(
    published: Published, verifier: Verifier
) -> None:
    published.answers_of("able-owl")[0].update(score=None, solved=None, verdict="")
    doubtful = {"answers": CheckOutcome.DOUBTFUL, "scores": CheckOutcome.DIFFERS}
    assert outcomes(published, verifier) == {**HOLDS, **doubtful}


def test_a_timeout_at_the_site_is_doubtful_and_not_blamed(
    published: Published, verifier: Verifier
) -> None:
    [wrong] = [each for each in published.answers if each["verdict"] == "no_answer"]
    wrong["verdict"] = "timeout"
    check = audit(published, verifier)["answers"]
    assert check.outcome is CheckOutcome.DOUBTFUL
    assert "1 timed out at the site only" in check.compared


def test_a_timeout_that_is_worth_something_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    [wrong] = [each for each in published.answers if each["verdict"] == "no_answer"]
    wrong.update(verdict="timeout", score=1.0, solved=True)
    assert outcomes(published, verifier)["answers"] is CheckOutcome.DIFFERS


def test_only_the_first_differences_are_named_and_all_are_counted(
    published: Published, verifier: Verifier
) -> None:
    for answer in published.answers:
        answer["verdict"] = "partial"
    differences = audit(published, verifier)["answers"].differences
    assert (len(differences.first), differences.count) == (NAMED, 17)


# ---- the scores


@pytest.mark.parametrize(
    "change",
    [
        {"score": 0.9},
        {"score": None},
        {"n": 5},
        {"correct": 5},
        {"cells": {"chain_sum": [6, 6]}},
        {"status": "absent"},
    ],
)
def test_another_score_is_found_out(
    published: Published, verifier: Verifier, change: dict[str, Any]
) -> None:
    published.score_of("able-owl").update(change)
    check = audit(published, verifier)["scores"]
    assert check.outcome is CheckOutcome.DIFFERS
    assert "able-owl" in check.differences.first[0].where


def test_a_score_without_its_node_being_there_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    published.score_of("dear-gnu").update(status="scored", score=0.0, n=6)
    assert outcomes(published, verifier) == differing("scores")


def test_a_node_that_answered_and_is_said_to_be_absent_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    published.score_of("able-owl").update(ABSENT)
    assert outcomes(published, verifier) == differing("scores")


def test_a_missing_score_is_found_out(published: Published, verifier: Verifier) -> None:
    published.record["scores"].remove(published.score_of("bold-fox"))
    assert outcomes(published, verifier) == differing("scores")


def test_two_scores_of_a_node_are_found_out(published: Published, verifier: Verifier) -> None:
    published.record["scores"].append(published.score_of("bold-fox"))
    assert outcomes(published, verifier) == differing("scores")


def test_a_withheld_answer_is_found_out(published: Published, verifier: Verifier) -> None:
    published.answers.remove(published.answers_of("able-owl")[0])
    assert outcomes(published, verifier) == differing("scores")


def test_a_second_answer_to_a_question_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    published.answers.append(published.answers_of("able-owl")[0])
    assert outcomes(published, verifier) == differing("scores")


def test_an_answer_to_a_question_that_was_not_asked_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    published.answers.append({**published.answers[0], "question": "q99"})
    assert outcomes(published, verifier) == differing("scores")


def test_a_question_that_is_left_out_for_one_node_only_is_found_out(
    published: Published, verifier: Verifier
) -> None:
    score = published.score_of("bold-fox")
    kept = copy.deepcopy(score)
    published.leave_ungraded(published.answers_of("able-owl")[0])
    score.update(kept)
    assert outcomes(published, verifier)["scores"] is CheckOutcome.DIFFERS


def test_nodes_are_absent_from_a_round_of_which_no_question_was_graded(
    published: Published, verifier: Verifier
) -> None:
    published.leave_ungraded(*published.answers_of("able-owl"))
    assert outcomes(published, verifier) == {**HOLDS, "answers": CheckOutcome.DOUBTFUL}
