"""Answers are graded in batches, each exactly once, by as many workers as there are."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, starmap
from time import monotonic
from typing import NamedTuple
from uuid import UUID

import msgspec
from django.db import connection, transaction
from django.db.models import QuerySet

from judge.engine import Phase
from judge.models import Answer, Question, Round
from judge.selectors.rounds import answers_to_grade
from judge.services.patience import (
    PATIENCE_S,
    PUT_OFF,
    Sitting,
    charge,
    put_off,
    read_costs,
    time_out_late,
    time_out_spent,
)
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verifier import DEADLINE_S, Attempt, Verdict

logger = logging.getLogger(__name__)

# Enough answers to a question to make a batch worth while, few enough that a tick never waits long.
BATCH = 2048
# After this many seconds no other answer of a batch is begun, so that what is graded is written.
SLICE_S = 2.0
# What stands in place of a verdict when the question itself could not be made again.
_STUCK = "not_gradable"
# Rounds whose answers are still graded.
_WAITING = f"phase IN ('{Phase.OPEN}', '{Phase.SCORING}')"

Graded = tuple[int, Verdict]


class _Waiting(NamedTuple):
    """An answer that waits for its verdict."""

    pk: int
    question: UUID
    round: int
    node: int
    text: str

    @property
    def sitting(self) -> Sitting:
        """Whose account its grading is charged to."""
        return self.round, self.node


@dataclass
class _Pile:
    """All claimed answers to one question."""

    question: UUID
    answers: list[_Waiting] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The answers' texts, in order."""
        return [answer.text for answer in self.answers]


@dataclass(frozen=True)
class _Pace:
    """How long an answer may take, and until when (`time.monotonic`) one may be begun."""

    text_s: float
    until: float


Attempts = list[tuple[_Waiting, Attempt]]
Job = tuple[TaskSpec, list[str]]
Score = Callable[[list[Job]], list[list[Attempt]]]


def grade_batch(*, verifier: AnyVerifier) -> int:
    """Grade up to BATCH answers that have no verdict; return how many were graded or put off.

    Claimed answers stay locked until their verdicts are committed, and others pass over them: a
    worker that dies gives its claim back with its connection, so no answer is lost or graded twice.
    """
    with transaction.atomic():
        costs = read_costs()
        claimed = _claim()
        if not claimed:
            timed_out = time_out_late() + time_out_spent(costs)
            return timed_out or _grade(_claim_put_off(costs), DEADLINE_S, verifier)
        slow = {sitting for sitting, seconds in costs.items() if seconds >= PATIENCE_S}
        delayed = put_off(answer.pk for answer in claimed if answer.sitting in slow)
        prompt = [answer for answer in claimed if answer.sitting not in slow]
        return delayed + _grade(prompt, PATIENCE_S, verifier)


def _claim() -> list[_Waiting]:
    """Lock answers that wait, question by question; those last that could not be graded before.

    A question that is not graded for everybody by the deadline counts for nobody, so whole
    questions come one after the other: by the index that the round's secret drew. It is sealed, so
    nobody can keep the graders busy until those are left that suit it.
    """
    waiting = answers_to_grade().exclude(verdict=PUT_OFF)
    drawn = ("question__spec__index", "question_id")
    return _lock(waiting.order_by("verdict", "question__round__score_by", *drawn)[:BATCH])


def _claim_put_off(costs: Mapping[Sitting, float]) -> list[_Waiting]:
    """Lock one answer of each node that has some put off, of those that cost least so far first."""
    put_off_ones = answers_to_grade().filter(verdict=PUT_OFF).order_by("received_at", "pk")
    firsts: dict[Sitting, int] = {}
    for pk, round_id, node_id in put_off_ones.values_list("pk", "question__round", "node"):
        firsts.setdefault((round_id, node_id), pk)
    cheapest = sorted(firsts, key=lambda sitting: costs.get(sitting, 0.0))
    claimed = _lock(answers_to_grade().filter(pk__in=[firsts[sitting] for sitting in cheapest]))
    return sorted(claimed, key=lambda answer: costs.get(answer.sitting, 0.0))


def _lock(waiting: QuerySet[Answer]) -> list[_Waiting]:
    columns = ("pk", "question_id", "question__round_id", "node_id", "text")
    locked = waiting.select_for_update(skip_locked=True, of=("self",)).values_list(*columns)
    return list(starmap(_Waiting, locked))


def _grade(claimed: Sequence[_Waiting], text_s: float, verifier: AnyVerifier) -> int:
    """Grade what there is time for, and put off what takes longer than `text_s` seconds."""
    if not claimed:
        return 0
    pace = _Pace(text_s, monotonic() + SLICE_S)
    attempts = _attempt(claimed, pace, verifier=verifier)
    graded = [(a.pk, attempt.verdict) for a, attempt in attempts if attempt.verdict is not None]
    stored = _store(graded) if graded else 0
    # One that was not reached has cost nothing and waits on as it was.
    delayed = put_off(a.pk for a, attempt in attempts if not attempt.verdict and attempt.seconds)
    charge((a.sitting, attempt.seconds) for a, attempt in attempts)
    return stored + delayed


def _pile_up(claimed: Iterable[_Waiting]) -> list[_Pile]:
    piles: dict[UUID, _Pile] = {}
    for answer in claimed:
        piles.setdefault(answer.question, _Pile(answer.question)).answers.append(answer)
    return list(piles.values())


def _attempt(claimed: Sequence[_Waiting], pace: _Pace, *, verifier: AnyVerifier) -> Attempts:
    """Grade the answers to each round as it reads them."""
    rounds = Round.objects.in_bulk({answer.round for answer in claimed})
    attempts: Attempts = []
    for pk, judge_round in rounds.items():
        score = partial(
            verifier.score_some,
            until=pace.until,
            text_s=pace.text_s,
            rules=judge_round.answer_rules,
        )
        attempts += _attempt_piles(_pile_up(a for a in claimed if a.round == pk), score)
    return attempts


def _attempt_piles(piles: list[_Pile], score: Score) -> Attempts:
    """Grade all piles at once, or one by one when a question among them cannot be made again."""
    questions = Question.objects.in_bulk([pile.question for pile in piles])
    jobs = [
        (msgspec.convert(questions[pile.question].spec, TaskSpec), pile.texts) for pile in piles
    ]
    try:
        groups = score(jobs)
    except RefusedError:
        return _attempt_one_by_one(piles, jobs, score)
    answers = (answer for pile in piles for answer in pile.answers)
    return list(zip(answers, chain.from_iterable(groups), strict=True))


def _attempt_one_by_one(piles: list[_Pile], jobs: list[Job], score: Score) -> Attempts:
    """Let a bad question cost only its own answers: they are tried again, after all others."""
    attempts: Attempts = []
    for pile, job in zip(piles, jobs, strict=True):
        try:
            (group,) = score([job])
        except RefusedError as refusal:
            logger.error("answers about %s cannot be graded: %s", job[0].dataset, refusal.message)
            ids = [answer.pk for answer in pile.answers]
            Answer.objects.filter(pk__in=ids).update(verdict=_STUCK)
        else:
            attempts += zip(pile.answers, group, strict=True)
    return attempts


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
