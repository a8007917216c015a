"""Nodes take their seats and hand in answers.

Written in plain SQL where a thousand nodes come at the same moment (`make bench-judge`): storing a
node's answers costs five statements, however many they are.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import connection, transaction

from judge.engine import Deadlines, Phase, takes_answers
from judge.models import Answer, Question, Round, Season, Seat
from swarm_protocol.errors import FIXES, ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText, Rejected
from swarm_web.nodes.models import Node


def take_seat(node: Node, *, number: int, now: datetime) -> Round:
    """Note that the node was offered an open round's questions, and return the round.

    Raises RefusedError when there is no such round, it is not open, or the node came too late
    for it.
    """
    judge_round = _get_round(number)
    with transaction.atomic():
        if not _hold_open(judge_round, now=now):
            raise RefusedError(ErrorCode.ROUND_NOT_OPEN, f"round {number} takes no answers now")
        seat, _ = Seat.objects.get_or_create(
            round=judge_round,
            node=node,
            defaults={"came_late": judge_round.season.late_joiners == Season.LateJoiners.WAIT},
        )
        if not seat.came_late and seat.offered_at is None:
            Seat.objects.filter(pk=seat.pk, offered_at=None).update(offered_at=now)
    if seat.came_late:
        late = f"{node.name} came after round {number} had opened"
        raise RefusedError(ErrorCode.ROUND_PENDING, late)
    return judge_round


def _get_round(number: int) -> Round:
    try:
        return Round.objects.select_related("season").get(number=number)
    except Round.DoesNotExist:
        raise RefusedError(ErrorCode.ROUND_UNKNOWN, f"there is no round {number}") from None


def _hold_open(judge_round: Round, *, now: datetime) -> bool:
    """Tell whether the round takes answers, and keep it from moving on until we commit.

    The lock is shared: nodes that submit at once do not wait for each other, only the change of
    phase waits for them. Deadlines are read anew, because an outage may have moved them.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT phase, opens_at, closes_at, score_by FROM judge_round WHERE id = %s FOR SHARE",
            [judge_round.pk],
        )
        phase, *deadlines = cursor.fetchone()
    judge_round.phase = phase
    judge_round.opens_at, judge_round.closes_at, judge_round.score_by = deadlines
    return takes_answers(Phase(phase), Deadlines(*deadlines), now=now)


@lru_cache(maxsize=64)
def offered_questions(round_id: int) -> tuple[Question, ...]:
    """Return a round's questions in order; they never change, so a process reads them once."""
    return tuple(Question.objects.filter(round_id=round_id).order_by("position"))


@dataclass
class Receipt:
    """What became of submitted answers, by question id."""

    accepted: list[str] = field(default_factory=list)
    duplicate: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def submit_answers(
    node: Node, *, number: int, answers: Sequence[AnswerText], now: datetime
) -> Receipt:
    """Store answers durably; the first to a question counts, a repeated one changes nothing.

    Answers after the deadline or to questions that the node was not offered are rejected one by
    one. Raises RefusedError when there is no such round.
    """
    judge_round = _get_round(number)
    with transaction.atomic():
        open_now = _hold_open(judge_round, now=now)
        # Held against a second sender with the same token.
        seats = Seat.objects.select_for_update().filter(round=judge_round, node=node)
        seat = seats.exclude(offered_at=None).first()
        if seat is None:
            return _sort_answers(answers, offered=frozenset(), new=set(), stored=set(), late="")
        offered = frozenset(str(question.pk) for question in offered_questions(judge_round.pk))
        new = _insert(answers, seat=seat, offered=offered, now=now) if open_now else set()
        stored = _stored(seat)
        if new and len(stored) == len(offered):
            Seat.objects.filter(pk=seat.pk, completed_at=None).update(completed_at=now)
    late = f"round {number} took answers until {judge_round.closes_at.isoformat()}"
    return _sort_answers(answers, offered=offered, new=new, stored=stored, late=late)


def _insert(
    answers: Sequence[AnswerText], *, seat: Seat, offered: Set[str], now: datetime
) -> set[str]:
    """Insert the answers to offered questions that have none yet; return these questions."""
    first = {answer.question: answer for answer in reversed(answers) if answer.question in offered}
    assert seat.offered_at is not None
    latency = max(0, (now - seat.offered_at) // timedelta(milliseconds=1))
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO judge_answer
                (question_id, text, finish_reason, node_id, received_at, latency_ms, verdict)
            SELECT given.*, %s, %s, %s, '' FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS given
            ON CONFLICT (question_id, node_id) DO NOTHING
            RETURNING question_id
            """,
            [
                seat.node_id,
                now,
                latency,
                list(first),
                [answer.text for answer in first.values()],
                [answer.finish_reason for answer in first.values()],
            ],
        )
        return {str(question) for (question,) in cursor.fetchall()}


def _stored(seat: Seat) -> set[str]:
    """Return the questions of the round that the node has answered."""
    answers = Answer.objects.filter(question__round=seat.round_id, node=seat.node_id)
    return {str(pk) for pk in answers.values_list("question_id", flat=True)}


def _sort_answers(
    answers: Sequence[AnswerText],
    *,
    offered: Set[str],
    new: set[str],
    stored: Set[str],
    late: str,
) -> Receipt:
    """Say of each answer what became of it; the first of several to a question is the new one."""
    receipt = Receipt()
    for answer in answers:
        if answer.question not in offered:
            _reject(receipt, answer, ErrorCode.ANSWER_NOT_YOURS, "not offered to this node")
        elif answer.question in new:
            new.remove(answer.question)
            receipt.accepted.append(answer.question)
        elif answer.question in stored:
            receipt.duplicate.append(answer.question)
        else:
            _reject(receipt, answer, ErrorCode.ANSWER_LATE, late)
    return receipt


def _reject(receipt: Receipt, answer: AnswerText, code: ErrorCode, message: str) -> None:
    receipt.rejected.append(
        Rejected(item=answer.question, code=code, message=message, fix=FIXES[code])
    )
