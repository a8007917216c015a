"""Grades answers in batches, each answer exactly once, with any number of workers."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, starmap
from time import monotonic
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec
from django.db import connection, transaction
from django.db.models import QuerySet

from judge.engine import Phase
from judge.models import Answer, Question, Round
from judge.selectors.rounds import answers_to_grade
from judge.services.patience import (
    POSTPONE_AFTER_S,
    POSTPONED,
    SeatKey,
    add_costs,
    postpone,
    read_costs,
    time_out,
    time_out_over_budget,
)
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.batches import Batch
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verdicts import Attempt, Verdict
from swarm_tasks.verifier import DEADLINE_S

logger = logging.getLogger(__name__)

# Large enough for batches to be efficient, small enough that a tick never waits long.
BATCH = 2048
# No answer of a batch is started after this many seconds, so that verdicts are soon written.
SLICE_S = 2.0
# The verdict of an answer whose question could not be generated again.
_NOT_GRADABLE = "not_gradable"
# SQL condition for rounds whose answers are still graded.
_IN_GRADING = f"phase IN ('{Phase.OPEN}', '{Phase.SCORING}')"

Graded = tuple[int, Verdict]


class _Ungraded(NamedTuple):
    """An answer without a verdict, locked for grading."""

    pk: int
    question: UUID
    round: int
    node: int
    text: str

    @property
    def seat(self) -> SeatKey:
        """The seat that its grading time is charged to."""
        return self.round, self.node


Attempts = list[tuple[_Ungraded, Attempt]]
# A question with all locked answers to it.
Job = tuple[TaskSpec, list[_Ungraded]]


class _ScoreBatch(Protocol):
    """`Verifier.score_until` with the other arguments given."""

    def __call__(self, batch: Batch, *, until: float) -> list[list[Attempt]]: ...


def grade_batch(*, verifier: AnyVerifier) -> int:
    """Grade a batch of answers without a verdict.

    Returns how many answers were graded, postponed or timed out (`judge.services.patience`).

    The batch has up to BATCH answers that are neither postponed nor marked because their question
    could not be generated again. If none of these can be locked, postponed answers are handled
    instead. A postponed answer times out if its round is closed, or if its seat is over its budget.
    If no answer timed out, the oldest postponed answer of each seat is graded. If there is none
    either, the marked answers to one question are tried again.

    The answers stay locked until their verdicts are committed, and other workers skip them. If a
    worker dies, its connection closes and its locks end, so no answer is lost or graded twice.
    """
    with transaction.atomic():
        costs = read_costs()
        locked = _lock_waiting()
        if not locked:
            # The round of an answer may have closed while a worker held the answer's lock.
            left = time_out(Answer.objects.filter(question__round__phase=Phase.CLOSED))
            timed_out = left + time_out_over_budget(costs)
            return (
                timed_out
                or _grade(_lock_postponed(costs), DEADLINE_S, verifier)
                or _grade(_lock_marked(), POSTPONE_AFTER_S, verifier)
            )
        slow = {seat for seat, seconds in costs.items() if seconds >= POSTPONE_AFTER_S}
        postponed = postpone(answer.pk for answer in locked if answer.seat in slow)
        fast = [answer for answer in locked if answer.seat not in slow]
        return postponed + _grade(fast, POSTPONE_AFTER_S, verifier)


def _lock_waiting() -> list[_Ungraded]:
    """Lock and return up to BATCH answers that are neither postponed nor marked _NOT_GRADABLE.

    They are ordered by their round's deadline, then by question.

    If an answer to a question is not graded by the deadline, the question counts for no node, so
    questions are graded one after the other. The order of questions is that of the indexes in their
    task specs. Nodes do not know the indexes, which are drawn from the round's secret, so nodes
    cannot choose which questions remain ungraded.
    """
    waiting = answers_to_grade().exclude(verdict__in=[POSTPONED, _NOT_GRADABLE])
    drawn = ("question__spec__index", "question_id")
    return _lock(waiting.order_by("question__round__score_by", *drawn)[:BATCH])


def _lock_postponed(costs: Mapping[SeatKey, float]) -> list[_Ungraded]:
    """Lock and return the oldest postponed answer of each seat, the seat of lowest cost first."""
    postponed = answers_to_grade().filter(verdict=POSTPONED).order_by("received_at", "pk")
    firsts: dict[SeatKey, int] = {}
    for pk, round_id, node_id in postponed.values_list("pk", "question__round", "node"):
        firsts.setdefault((round_id, node_id), pk)
    locked = _lock(answers_to_grade().filter(pk__in=list(firsts.values())))
    return sorted(locked, key=lambda answer: costs.get(answer.seat, 0.0))


def _lock_marked() -> list[_Ungraded]:
    """Lock and return up to BATCH answers to one question that could not be generated again.

    The question is chosen at random, so that one that always fails does not delay the others. Only
    one is tried, because its generation may hang.
    """
    marked = answers_to_grade().filter(verdict=_NOT_GRADABLE)
    question = marked.order_by("?").values_list("question", flat=True).first()
    return _lock(marked.filter(question=question)[:BATCH])


def _lock(waiting: QuerySet[Answer]) -> list[_Ungraded]:
    columns = ("pk", "question_id", "question__round_id", "node_id", "text")
    locked = waiting.select_for_update(skip_locked=True, of=("self",)).values_list(*columns)
    return list(starmap(_Ungraded, locked))


def _grade(locked: Sequence[_Ungraded], text_s: float, verifier: AnyVerifier) -> int:
    """Grade locked answers, and return how many were graded or postponed.

    An answer that takes more than `text_s` seconds is postponed, or gets the verdict `timeout` if
    `text_s` is the verifier's deadline. No answer is started after SLICE_S seconds; answers that
    were not started stay as they are. Each seat is charged the time that its answers took.
    """
    if not locked:
        return 0
    attempts = _attempt(locked, text_s, verifier=verifier)
    graded = [(a.pk, attempt.verdict) for a, attempt in attempts if attempt.verdict is not None]
    stored = _store(graded) if graded else 0
    # An answer that was not started has a time of 0.
    postponed = postpone(a.pk for a, attempt in attempts if not attempt.verdict and attempt.seconds)
    add_costs((a.seat, attempt.seconds) for a, attempt in attempts)
    return stored + postponed


def _attempt(locked: Sequence[_Ungraded], text_s: float, *, verifier: AnyVerifier) -> Attempts:
    """Try to grade the answers by the answer rules of their rounds; return each with its `Attempt`.

    No answer is started after SLICE_S seconds (unless a question fails, see `_attempt_each`), or
    may take more than `text_s` seconds. Answers to questions that cannot be generated again are
    left out.
    """
    until = monotonic() + SLICE_S
    rounds = Round.objects.in_bulk({answer.round for answer in locked})
    attempts: Attempts = []
    for pk, judge_round in rounds.items():
        score = partial(verifier.score_until, text_s=text_s, rules=judge_round.answer_rules)
        jobs = _make_jobs(answer for answer in locked if answer.round == pk)
        attempts += _attempt_jobs(jobs, score, until=until)
    return attempts


def _make_jobs(answers: Iterable[_Ungraded]) -> list[Job]:
    by_question: dict[UUID, list[_Ungraded]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer)
    questions = Question.objects.in_bulk(list(by_question))
    return [
        (msgspec.convert(questions[pk].spec, TaskSpec), group) for pk, group in by_question.items()
    ]


def _attempt_jobs(jobs: list[Job], score: _ScoreBatch, *, until: float) -> Attempts:
    """Grade the answers to all questions together, and return each answer with its `Attempt`.

    If a question cannot be generated again, the questions are graded one by one. The answers to
    that question are left out of the result, and marked in the database so that later calls try
    them last.
    """
    batch = [(spec, [answer.text for answer in answers]) for spec, answers in jobs]
    try:
        groups = score(batch, until=until)
    except RefusedError as refusal:
        if len(jobs) > 1:
            return _attempt_each(jobs, score, until=until)
        ((spec, answers),) = jobs
        logger.error("answers about %s cannot be graded: %s", spec.dataset, refusal.message)
        ids = [answer.pk for answer in answers]
        Answer.objects.filter(pk__in=ids).update(verdict=_NOT_GRADABLE)
        return []
    locked = (answer for _, answers in jobs for answer in answers)
    return list(zip(locked, chain.from_iterable(groups), strict=True))


def _attempt_each(jobs: list[Job], score: _ScoreBatch, *, until: float) -> Attempts:
    """Grade the answers to each question on its own (`_attempt_jobs`).

    A question that hangs has used up the time until `until`, so each question gets some time after
    it: otherwise the one that hangs would never be found. Once it is found, the others are left to
    later calls.
    """
    attempts: Attempts = []
    for job in jobs:
        extended = max(until, monotonic() + SLICE_S / len(jobs))
        found = _attempt_jobs([job], score, until=extended)
        if not found and monotonic() > until:
            break
        attempts += found
    return attempts


def _store(graded: list[Graded]) -> int:
    """Write the verdicts of answers that have none yet, and return how many were written.

    Answers in a round that has closed meanwhile get no verdict, because the round was scored
    without them. A shared lock on the rounds keeps them from closing until this transaction ends;
    if a round is already closing, this call waits for it.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM judge_round WHERE {_IN_GRADING} FOR SHARE")
    return _update(
        graded,
        f"""
        answer.score IS NULL AND answer.question_id IN (
            SELECT question.id FROM judge_question AS question
            JOIN judge_round AS round ON round.id = question.round_id WHERE {_IN_GRADING}
        )
        """,
    )


def replace_verdicts(graded: list[Graded]) -> int:
    """Replace the verdicts of these answers, and return how many differ from the old ones."""
    return _update(
        graded,
        """
        (answer.score, answer.solved, answer.verdict)
            IS DISTINCT FROM (given.score, given.solved, given.verdict)
        """,
    )


def _update(graded: list[Graded], condition: str) -> int:
    """Write the verdicts in one statement, each only if its answer fulfils the SQL `condition`.

    Returns how many answers were written.
    """
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
