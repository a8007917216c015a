"""Whether the answers of a round have the published verdicts and scores."""

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


def test_changed_text_is_detected(published: Published, verifier: Verifier) -> None:
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
def test_changed_verdict_is_detected(
    published: Published, verifier: Verifier, change: dict[str, Any]
) -> None:
    [wrong] = [each for each in published.answers if each["verdict"] == "no_answer"]
    wrong.update(change)
    assert outcomes(published, verifier)["answers"] is CheckOutcome.DIFFERS


def test_flipped_result_also_contradicts_the_score(
    published: Published, verifier: Verifier
) -> None:
    published.answers_of("able-owl")[0]["solved"] = False
    assert outcomes(published, verifier) == differing("answers", "scores")


def test_answer_with_an_incomplete_verdict_is_detected(
    published: Published, verifier: Verifier
) -> None:
    published.answers_of("able-owl")[0]["score"] = None
    assert outcomes(published, verifier)["answers"] is CheckOutcome.DIFFERS


def test_right_answer_left_ungraded_contradicts_the_score(
    published: Published, verifier: Verifier
) -> None:
    published.answers_of("able-owl")[0].update(score=None, solved=None, verdict="")
    doubtful = {"answers": CheckOutcome.DOUBTFUL, "scores": CheckOutcome.DIFFERS}
    assert outcomes(published, verifier) == {**HOLDS, **doubtful}


def test_timeout_only_at_the_site_is_doubtful(published: Published, verifier: Verifier) -> None:
    [wrong] = [each for each in published.answers if each["verdict"] == "no_answer"]
    wrong["verdict"] = "timeout"
    check = audit(published, verifier)["answers"]
    assert check.outcome is CheckOutcome.DOUBTFUL
    assert "1 timed out at the site only" in check.compared


def test_timeout_with_a_score_is_detected(published: Published, verifier: Verifier) -> None:
    [wrong] = [each for each in published.answers if each["verdict"] == "no_answer"]
    wrong.update(verdict="timeout", score=1.0, solved=True)
    assert outcomes(published, verifier)["answers"] is CheckOutcome.DIFFERS


def test_only_the_first_differences_are_named_but_all_are_counted(
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
def test_changed_score_is_detected(
    published: Published, verifier: Verifier, change: dict[str, Any]
) -> None:
    published.score_of("able-owl").update(change)
    check = audit(published, verifier)["scores"]
    assert check.outcome is CheckOutcome.DIFFERS
    assert "able-owl" in check.differences.first[0].where


def test_score_of_an_absent_node_is_detected(published: Published, verifier: Verifier) -> None:
    published.score_of("dear-gnu").update(status="scored", score=0.0, n=6)
    assert outcomes(published, verifier) == differing("scores")


def test_node_that_answered_but_is_recorded_as_absent_is_detected(
    published: Published, verifier: Verifier
) -> None:
    published.score_of("able-owl").update(ABSENT)
    assert outcomes(published, verifier) == differing("scores")


def test_missing_score_is_detected(published: Published, verifier: Verifier) -> None:
    published.record["scores"].remove(published.score_of("bold-fox"))
    assert outcomes(published, verifier) == differing("scores")


def test_duplicate_score_of_a_node_is_detected(published: Published, verifier: Verifier) -> None:
    published.record["scores"].append(published.score_of("bold-fox"))
    assert outcomes(published, verifier) == differing("scores")


def test_withheld_answer_is_detected(published: Published, verifier: Verifier) -> None:
    published.answers.remove(published.answers_of("able-owl")[0])
    assert outcomes(published, verifier) == differing("scores")


def test_second_answer_to_a_question_is_detected(published: Published, verifier: Verifier) -> None:
    published.answers.append(published.answers_of("able-owl")[0])
    assert outcomes(published, verifier) == differing("scores")


def test_answer_to_an_unasked_question_is_detected(
    published: Published, verifier: Verifier
) -> None:
    published.answers.append({**published.answers[0], "question": "q99"})
    assert outcomes(published, verifier) == differing("scores")


def test_question_omitted_for_only_one_node_is_detected(
    published: Published, verifier: Verifier
) -> None:
    score = published.score_of("bold-fox")
    kept = copy.deepcopy(score)
    published.leave_ungraded(published.answers_of("able-owl")[0])
    score.update(kept)
    assert outcomes(published, verifier)["scores"] is CheckOutcome.DIFFERS


def test_nodes_are_absent_from_a_round_without_graded_questions(
    published: Published, verifier: Verifier
) -> None:
    published.leave_ungraded(*published.answers_of("able-owl"))
    assert outcomes(published, verifier) == {**HOLDS, "answers": CheckOutcome.DOUBTFUL}
