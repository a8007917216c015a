"""Whether the questions of a round are those that its commitment fixed."""

from typing import Any

import msgspec
import pytest

from node_client.commands.verification.audit import audit_round
from node_client.commands.verification.checks import CheckOutcome
from node_client.commands.verification.earlier import gather_earlier
from node_client.storage.commitments import RecordedCommitment
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import digest_question, encode_digests
from swarm_tasks.batches import Batch
from swarm_tasks.pool import VerifierPool
from swarm_tasks.quiz import QUIZ_FORMAT_1, QuizRules, commit_quiz, draw_quiz, with_answers
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask, Verifier
from tests.node_client.commands.verification.auditing import HOLDS, audit, differing, outcomes
from tests.node_client.commands.verification.rounds import (
    NUMBER,
    RULES,
    SECRET,
    Published,
    publish_round,
)
from tests.node_client.fakes import BorrowingVerifier


def test_honest_round_passes_all_checks(published: Published, verifier: Verifier) -> None:
    checks = audit(published, verifier)
    assert outcomes(published, verifier) == HOLDS
    assert "4 questions of 2 earlier rounds" in checks["asked before"].compared
    assert "6 questions" in checks["questions"].compared
    assert "17 answers scored again" in checks["answers"].compared
    assert "4 nodes" in checks["scores"].compared


@pytest.mark.parametrize(("reading", "score"), [("answers-1", 0.0), ("answers-2", 1.0)])
def test_answers_are_read_by_the_answer_rules_of_the_round(
    verifier: Verifier, reading: str, score: float
) -> None:
    published = publish_round(verifier, reading=AnswerRules(reading), wrapping="**{}**")
    assert published.score_of("able-owl")["score"] == score
    assert outcomes(published, verifier) == HOLDS


@pytest.mark.slow
def test_several_parallel_verifiers_give_the_same_outcomes(published: Published) -> None:
    with VerifierPool(2) as pool:
        checks = list(
            audit_round(
                published.round,
                number=NUMBER,
                recorded=None,
                asked=published.earlier,
                answers=published.lines,
                verifier=pool,
            )
        )
    assert {check.outcome for check in checks} == {CheckOutcome.HOLDS, CheckOutcome.SKIPPED}


def test_progress_is_reported_in_answers(published: Published, verifier: Verifier) -> None:
    done: list[int] = []
    for _ in audit_round(
        published.round,
        number=NUMBER,
        recorded=None,
        asked=published.earlier,
        answers=published.lines,
        verifier=verifier,
        progress=done.append,
    ):
        pass
    assert sum(done) == len(published.answers)


# ---- questions of earlier rounds


def test_earlier_questions_that_the_round_is_not_bound_to_are_detected(
    published: Published, verifier: Verifier
) -> None:
    """As if the judge had skipped a question because it knew how nodes would answer it."""
    published.asked[0]["questions"] = "0123456789abcdef" + published.asked[0]["questions"]
    assert outcomes(published, verifier) == differing("asked before")


def test_omitted_earlier_round_is_detected(published: Published, verifier: Verifier) -> None:
    del published.asked[0]
    assert outcomes(published, verifier) == differing("asked before", "questions")


def test_repeated_question_is_detected(published: Published, verifier: Verifier) -> None:
    """The chain is right, but the round asks a question of an earlier round."""
    repeated = published.record["questions"][2]["prompt"]
    earlier_round = published.asked[1]
    earlier_round["questions"] += encode_digests([digest_question(repeated)]).hex()
    rebind(published)
    assert outcomes(published, verifier)["questions"] is CheckOutcome.DIFFERS


def rebind(published: Published) -> None:
    """Commit the round to its earlier rounds in their current form."""
    rules = msgspec.convert(published.record["rules"], QuizRules)
    rules = msgspec.structs.replace(rules, asked=gather_earlier(published.earlier).chain)
    published.record["rules"] = msgspec.to_builtins(rules)
    published.record["commitment"] = commit_quiz(rules, secret=SECRET)


def test_deviation_that_a_sealed_round_may_explain_is_unknown(
    published: Published, verifier: Verifier
) -> None:
    published.asked[1].update(seal=None, questions=None)
    checks = audit(published, verifier)
    assert checks["asked before"].outcome is CheckOutcome.HOLDS
    assert checks["questions"].outcome is CheckOutcome.UNKNOWN
    assert f"round {NUMBER - 1}" in checks["questions"].compared


def test_sealed_round_without_influence_leaves_the_questions_confirmed(
    published: Published, verifier: Verifier
) -> None:
    sealed = {"round": NUMBER - 1, "entry": "5" * 64, "seal": None, "questions": None}
    published.asked.append(sealed)
    rebind(published)
    assert outcomes(published, verifier) == HOLDS


@pytest.mark.parametrize(
    ("reading", "format"),
    [(AnswerRules.EXACT, "murmuration-quiz-1"), (AnswerRules.UNWRAPPED, "murmuration-quiz-2")],
)
def test_rounds_of_earlier_formats_are_still_checked(
    published: Published, verifier: Verifier, reading: AnswerRules, format: str
) -> None:
    rules = with_answers(
        msgspec.structs.replace(
            RULES, format=QUIZ_FORMAT_1, answers=msgspec.UNSET, asked=msgspec.UNSET
        ),
        reading,
    )
    assert rules.format == format
    drawn = draw_quiz(rules, secret=SECRET, seen=lambda _: (), verifier=verifier)
    published.asked.clear()
    published.record["rules"] = msgspec.to_builtins(rules)
    published.record["commitment"] = commit_quiz(rules, secret=SECRET)
    for question, task in zip(published.record["questions"], drawn, strict=True):
        question.update(prompt=task.question, spec=msgspec.to_builtins(task.spec))
    checks = audit(published, verifier)
    assert checks["asked before"].outcome is CheckOutcome.SKIPPED
    assert checks["commitment"].outcome is checks["questions"].outcome is CheckOutcome.HOLDS


# ---- the commitment


def test_another_secret_is_detected(published: Published, verifier: Verifier) -> None:
    published.record["secret"] = "ff" * 32
    assert outcomes(published, verifier) == differing("commitment", "questions")


def test_rules_changed_afterwards_are_detected(published: Published, verifier: Verifier) -> None:
    published.record["rules"]["season"] = "another"
    assert outcomes(published, verifier) == differing("commitment")


def test_commitment_of_another_round_is_detected(published: Published, verifier: Verifier) -> None:
    checks = audit(published, verifier, number=NUMBER + 1)
    [difference] = checks["commitment"].differences.first
    assert (difference.published, difference.ours) == ("12", "13")


@pytest.mark.parametrize(
    ("commitment", "outcome"),
    [("as published", CheckOutcome.HOLDS), ("else", CheckOutcome.DIFFERS)],
)
def test_commitment_noted_in_advance_is_compared(
    published: Published, verifier: Verifier, commitment: str, outcome: CheckOutcome
) -> None:
    if commitment == "as published":
        commitment = published.record["commitment"]
    recorded = RecordedCommitment(
        "https://swarm.org", NUMBER, commitment, "2026-01-01T12:00:00+00:00"
    )
    check = audit(published, verifier, recorded=recorded)["noted before"]
    assert check.outcome is outcome
    assert "2026-01-01T12:00:00+00:00" in check.compared


# ---- the questions


def test_reordered_questions_are_detected(published: Published, verifier: Verifier) -> None:
    first, second = published.record["questions"][:2]
    first["position"], second["position"] = second["position"], first["position"]
    assert outcomes(published, verifier) == differing("questions")


def test_exchanged_question_is_detected(published: Published, verifier: Verifier) -> None:
    first, second = published.record["questions"][:2]
    first["spec"], first["prompt"] = second["spec"], second["prompt"]
    assert outcomes(published, verifier) == differing("questions", "answers")


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "What is 1 + 1?"},
        {"dataset": "products"},
        {"position": 9},
        {"id": "q2"},
    ],
)
def test_changed_part_of_a_question_is_detected(
    published: Published, verifier: Verifier, change: dict[str, Any]
) -> None:
    published.record["questions"][0].update(change)
    assert outcomes(published, verifier)["questions"] is CheckOutcome.DIFFERS


def test_missing_question_is_detected(published: Published, verifier: Verifier) -> None:
    published.record["questions"].pop()
    assert outcomes(published, verifier)["questions"] is CheckOutcome.DIFFERS


# ---- a machine that cannot check


class BrokenVerifier(BorrowingVerifier):
    """Cannot make a task or score an answer."""

    def draw(self, **task: object) -> DrawnTask:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")


def test_broken_verifier_gives_unknown_outcomes(published: Published, verifier: Verifier) -> None:
    checks = audit(published, BrokenVerifier(verifier))
    assert checks["questions"].outcome is CheckOutcome.UNKNOWN
    assert checks["answers"].outcome is CheckOutcome.UNKNOWN
    assert checks["commitment"].outcome is CheckOutcome.HOLDS
    assert checks["scores"].outcome is CheckOutcome.HOLDS
