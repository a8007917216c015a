"""Nodes take their seats and answer; answers are graded in the verifier's child process."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from django.db import connection, transaction

from judge.models import Answer, Question, Round, Seat
from swarm_protocol.errors import FIXES, ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText, Rejected, TaskSpec
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node

# An answer that was not graded this long after its arrival was lost by a crash.
LOST_AFTER = timedelta(seconds=5)


def take_seat(node: Node, *, number: int, now: datetime) -> Round:
    """Note that the node was offered an open round's questions, and return the round.

    Raises RefusedError when there is no such round or it is not open.
    """
    judge_round = _get_round(number)
    with transaction.atomic():
        if not _hold_open(judge_round, now=now):
            raise RefusedError(ErrorCode.ROUND_NOT_OPEN, f"round {number} takes no answers now")
        seat, _ = Seat.objects.get_or_create(round=judge_round, node=node)
        Seat.objects.filter(pk=seat.pk, offered_at=None).update(offered_at=now)
    return judge_round


def _get_round(number: int) -> Round:
    try:
        return Round.objects.select_related("season").get(number=number)
    except Round.DoesNotExist:
        raise RefusedError(ErrorCode.ROUND_UNKNOWN, f"there is no round {number}") from None


@dataclass
class Receipt:
    """What became of submitted answers, by question id; `stored` are the new rows' keys."""

    accepted: list[str] = field(default_factory=list)
    duplicate: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)


def submit_answers(
    node: Node, *, number: int, answers: Sequence[AnswerText], now: datetime
) -> Receipt:
    """Store answers durably; the first to a question counts, a repeated one changes nothing.

    Answers after the deadline or to questions that the node was not offered are rejected one by
    one. Raises RefusedError when there is no such round.
    """
    judge_round = _get_round(number)
    receipt = Receipt()
    with transaction.atomic():
        open_now = _hold_open(judge_round, now=now)
        seat = Seat.objects.filter(round=judge_round, node=node, offered_at__isnull=False).first()
        offered = _question_ids(judge_round) if seat else frozenset()
        stored = _answered(judge_round, node)
        new: list[Answer] = []
        for answer in answers:
            if answer.question in stored:
                receipt.duplicate.append(answer.question)
            elif answer.question not in offered:
                _reject(receipt, answer, ErrorCode.ANSWER_NOT_YOURS, "not offered to this node")
            elif not open_now:
                late = f"round {number} took answers until {judge_round.closes_at.isoformat()}"
                _reject(receipt, answer, ErrorCode.ANSWER_LATE, late)
            else:
                stored.add(answer.question)
                receipt.accepted.append(answer.question)
                new.append(_answer_row(node, answer, now=now))
        receipt.stored = [row.pk for row in Answer.objects.bulk_create(new)]
        if seat and stored == offered:
            Seat.objects.filter(pk=seat.pk, completed_at=None).update(completed_at=now)
    return receipt


def _hold_open(judge_round: Round, *, now: datetime) -> bool:
    """Tell whether the round takes answers, and keep it from moving on until we commit.

    The lock is shared: nodes that submit at once do not wait for each other, only the change of
    phase waits for them.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT phase FROM judge_round WHERE id = %s FOR SHARE", [judge_round.pk])
        (phase,) = cursor.fetchone()
    return phase == Round.Phase.OPEN and now < judge_round.closes_at


def _question_ids(judge_round: Round) -> frozenset[str]:
    return frozenset(str(pk) for pk in judge_round.questions.values_list("pk", flat=True))


def _answered(judge_round: Round, node: Node) -> set[str]:
    """Return the questions that the node has answered, holding its seat against a second sender."""
    Seat.objects.select_for_update().filter(round=judge_round, node=node).first()
    rows = Answer.objects.filter(question__round=judge_round, node=node)
    return {str(pk) for pk in rows.values_list("question_id", flat=True)}


def _answer_row(node: Node, answer: AnswerText, *, now: datetime) -> Answer:
    return Answer(
        question_id=UUID(answer.question),
        node=node,
        text=answer.text,
        finish_reason=answer.finish_reason,
        received_at=now,
    )


def _reject(receipt: Receipt, answer: AnswerText, code: ErrorCode, message: str) -> None:
    receipt.rejected.append(
        Rejected(item=answer.question, code=code, message=message, fix=FIXES[code])
    )


# ---- grading


def find_unscored(*, now: datetime, limit: int) -> list[int]:
    """Return answers whose grading was lost, oldest first."""
    lost = Answer.objects.filter(
        score=None,
        received_at__lt=now - LOST_AFTER,
        question__round__phase__in=[Round.Phase.OPEN, Round.Phase.SCORING],
    )
    return list(lost.order_by("received_at").values_list("pk", flat=True)[:limit])


def score_answers(answer_ids: Sequence[int], *, verifier: Verifier) -> int:
    """Grade answers that have no score yet and return how many this call graded."""
    answers = Answer.objects.filter(pk__in=answer_ids, score=None).select_related("question")
    by_question: defaultdict[Question, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_question[answer.question].append(answer)
    graded = 0
    for question, group in by_question.items():
        spec = msgspec.convert(question.spec, TaskSpec)
        verdicts = verifier.score(spec, [answer.text for answer in group])
        for answer, verdict in zip(group, verdicts, strict=True):
            graded += Answer.objects.filter(pk=answer.pk, score=None).update(
                score=verdict.score, solved=verdict.solved, verdict=verdict.reason
            )
    return graded
