"""Answers are graded in batches, each exactly once, by as many workers as there are."""

import logging
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

import msgspec
from django.db import connection, transaction

from judge.engine import Phase
from judge.models import Answer, Question
from judge.selectors import answers_to_grade
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verifier import Verdict

logger = logging.getLogger(__name__)

# Enough answers to a question to make a batch worth while, few enough that a tick never waits long.
BATCH = 2048
# What stands in place of a verdict when the question itself could not be made again.
_STUCK = "not_gradable"
# Rounds whose answers are still graded.
_WAITING = f"phase IN ('{Phase.OPEN}', '{Phase.SCORING}')"

Graded = tuple[int, Verdict]


@dataclass
class _Pile:
    """All claimed answers to one question."""

    question: UUID
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def grade_batch(*, verifier: AnyVerifier) -> int:
    """Grade up to BATCH answers that have no verdict and return how many were graded.

    Claimed answers stay locked until their verdicts are committed, and others pass over them: a
    worker that dies gives its claim back with its connection, so no answer is lost or graded twice.
    """
    with transaction.atomic():
        piles = _claim()
        graded = _grade(piles, verifier=verifier) if piles else []
        return _store(graded) if graded else 0


def _claim() -> list[_Pile]:
    """Lock the oldest answers that wait, those last that could not be graded before."""
    waiting = (
        answers_to_grade()
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("verdict", "received_at")
        .values_list("pk", "question_id", "text")
    )
    piles: dict[UUID, _Pile] = {}
    for pk, question, text in waiting[:BATCH]:
        pile = piles.setdefault(question, _Pile(question))
        pile.ids.append(pk)
        pile.texts.append(text)
    return list(piles.values())


def _grade(piles: list[_Pile], *, verifier: AnyVerifier) -> list[Graded]:
    """Grade all piles at once, or one by one when a question among them cannot be made again."""
    questions = Question.objects.in_bulk([pile.question for pile in piles])
    jobs = [
        (msgspec.convert(questions[pile.question].spec, TaskSpec), pile.texts) for pile in piles
    ]
    try:
        verdicts = verifier.score_many(jobs)
    except RefusedError:
        return _grade_one_by_one(piles, jobs, verifier=verifier)
    ids = (pk for pile in piles for pk in pile.ids)
    return list(zip(ids, chain.from_iterable(verdicts), strict=True))


def _grade_one_by_one(
    piles: list[_Pile],
    jobs: list[tuple[TaskSpec, list[str]]],
    *,
    verifier: AnyVerifier,
) -> list[Graded]:
    """Let a bad question cost only its own answers: they are tried again, after all others."""
    graded: list[Graded] = []
    for pile, job in zip(piles, jobs, strict=True):
        try:
            (verdicts,) = verifier.score_many([job])
        except RefusedError as refusal:
            logger.error("answers about %s cannot be graded: %s", job[0].dataset, refusal.message)
            Answer.objects.filter(pk__in=pile.ids).update(verdict=_STUCK)
        else:
            graded += zip(pile.ids, verdicts, strict=True)
    return graded


def _store(graded: list[Graded]) -> int:
    """Write first verdicts and return how many were written; an answer that has one keeps it.

    A round that closed meanwhile was scored without these answers: they stay left out of it. The
    shared lock makes a round that is about to close wait, and us for one that is closing.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM judge_round WHERE {_WAITING} FOR SHARE")
    return _update(
        graded,
        f"""
        answer.score IS NULL AND answer.question_id IN (
            SELECT question.id FROM judge_question AS question
            JOIN judge_round AS round ON round.id = question.round_id WHERE {_WAITING}
        )
        """,
    )


def store_again(graded: list[Graded]) -> int:
    """Replace verdicts and return how many answers have another one now."""
    return _update(
        graded,
        """
        (answer.score, answer.solved, answer.verdict)
            IS DISTINCT FROM (given.score, given.solved, given.verdict)
        """,
    )


def _update(graded: list[Graded], condition: str) -> int:
    """Write verdicts in one statement where the condition holds; return how many were written."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE judge_answer AS answer
            SET score = given.score, solved = given.solved, verdict = given.verdict
            FROM unnest(%s::bigint[], %s::float8[], %s::bool[], %s::text[])
                AS given (id, score, solved, verdict)
            WHERE answer.id = given.id AND {condition}
            """,
            [
                [pk for pk, _ in graded],
                [verdict.score for _, verdict in graded],
                [verdict.solved for _, verdict in graded],
                [verdict.reason for _, verdict in graded],
            ],
        )
        return int(cursor.rowcount)
