"""Nodes take their seats and hand in answers.

A thousand nodes may hand in at the same moment, so answers are stored in plain SQL and for many
nodes at once: five statements in one transaction, however many they are (`make bench-judge`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import connection, transaction

from judge.engine import Deadlines, Phase, lost_time, takes_answers
from judge.models import Answer, Question, Round, Season, Seat, SiteKey
from judge.services.receipts import Paper, Signer, find_forged, sign_receipt
from swarm_protocol.errors import FIXES, ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText, Rejected, SignedReceipt
from swarm_web.nodes.models import Node


def take_seat(node: Node, *, number: int, now: datetime) -> Round:
    """Note that the node was offered an open round's questions, and return the round.

    Raises RefusedError when there is no such round, it is not open, or the node came too late
    for it.
    """
    judge_round = _get_round(number)
    with transaction.atomic():
        if not takes_answers(*_hold(judge_round, now=now), now=now):
            raise RefusedError(ErrorCode.ROUND_NOT_OPEN, f"round {number} takes no answers now")
        seat = Seat.objects.filter(round=judge_round, node=node).first()
        if seat is None:
            came_late = _must_wait(node, judge_round)
            seat, _ = Seat.objects.get_or_create(
                round=judge_round, node=node, defaults={"came_late": came_late}
            )
        if not seat.came_late and seat.offered_at is None:
            Seat.objects.filter(pk=seat.pk, offered_at=None).update(offered_at=now)
    if seat.came_late:
        late = f"{node.name} came after round {number} had opened"
        raise RefusedError(ErrorCode.ROUND_PENDING, late)
    return judge_round


def _must_wait(node: Node, judge_round: Round) -> bool:
    """Tell whether a node that was not invited waits for the next round.

    The invitation is the owner's: once one of its nodes has the questions, no other one may still
    join, because the owner could let it join only the rounds that suit it.
    """
    if judge_round.season.late_joiners == Season.LateJoiners.WAIT:
        return True
    # Read anew: the node came with its connection, and may have got an owner since.
    owner = Node.objects.filter(pk=node.pk).exclude(owner=None).values("owner")
    taken = Seat.objects.filter(round=judge_round, node__owner__in=owner)
    return taken.exclude(offered_at=None).exists()


def _get_round(number: int) -> Round:
    try:
        return Round.objects.select_related("season").get(number=number)
    except Round.DoesNotExist:
        raise RefusedError(ErrorCode.ROUND_UNKNOWN, f"there is no round {number}") from None


def _hold(judge_round: Round, *, now: datetime) -> tuple[Phase, Deadlines]:
    """Return where the round stands, and keep it from moving on until we commit.

    The lock is shared: nodes that submit at once do not wait for each other, only the change of
    phase waits for them. Deadlines are read anew, because an outage may have moved them; one that
    the judge's clock has not given back yet, because nodes were here again before it, counts too.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT round.phase, season.watched_at, round.opens_at, round.closes_at, round.score_by
            FROM judge_round AS round JOIN judge_season AS season ON season.id = round.season_id
            WHERE round.id = %s FOR SHARE OF round
            """,
            [judge_round.pk],
        )
        phase, watched_at, *deadlines = cursor.fetchone()
    return Phase(phase), Deadlines(*deadlines).give_back(lost_time(watched_at, now=now))


@lru_cache(maxsize=64)
def offered_questions(round_id: int) -> tuple[Question, ...]:
    """Return a round's questions in order; they never change, so a process reads them once."""
    return tuple(Question.objects.filter(round_id=round_id).order_by("position"))


# By node and question: the signature of the stored answer.
ByNode = defaultdict[int, dict[str, str]]


@dataclass(frozen=True)
class Submission:
    """Answers that one node handed in to one round."""

    node_id: int
    number: int
    answers: Sequence[AnswerText]
    received_at: datetime
    signer: Signer | None = None


@dataclass
class Receipt:
    """What became of submitted answers, by question id; `signed` is for the node to keep."""

    accepted: list[str] = field(default_factory=list)
    duplicate: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    signed: SignedReceipt | None = None


def store_submissions(submissions: Sequence[Submission]) -> list[Receipt | RefusedError]:
    """Store answers durably; the first to a question counts, a repeated one changes nothing.

    Answers after the deadline, to questions that the node was not offered or with a signature that
    is not the node's are rejected one by one; a submission to a round that does not exist is
    refused.
    """
    outcomes: dict[int, Receipt | RefusedError] = {}
    for number in {submission.number for submission in submissions}:
        places = [i for i, submission in enumerate(submissions) if submission.number == number]
        own = [submissions[i] for i in places]
        outcomes |= zip(places, _store_in_round(number, own), strict=True)
    return [outcomes[i] for i in range(len(submissions))]


def _store_in_round(
    number: int, submissions: Sequence[Submission]
) -> Sequence[Receipt | RefusedError]:
    try:
        judge_round = _get_round(number)
    except RefusedError as refusal:
        return [refusal] * len(submissions)
    paper = _lay_out(judge_round)
    forged = [find_forged(paper, each.answers, each.signer) for each in submissions]
    nodes = {submission.node_id for submission in submissions}
    now = max(submission.received_at for submission in submissions)
    with transaction.atomic():
        phase, deadlines = _hold(judge_round, now=now)
        # Held against a second sender with the same token; in order, so that batches never wait
        # for each other in a circle.
        seats = Seat.objects.select_for_update().filter(round=judge_round, node__in=nodes)
        offered = {s.node_id: s for s in seats.exclude(offered_at=None).order_by("pk")}
        in_time = [
            (submission, paper.positions.keys() - bad)
            for submission, bad in zip(submissions, forged, strict=True)
            if takes_answers(phase, deadlines, now=submission.received_at)
        ]
        new = _insert(in_time, seats=offered)
        stored = _read_stored(judge_round, offered)
        _complete(
            [
                seat
                for node, seat in offered.items()
                if node in new and len(stored[node]) == len(paper.positions)
            ],
            now=now,
        )
    late = f"round {number} took answers until {deadlines.closes_at.isoformat()}"
    receipts = [
        _sort_answers(
            submission.answers,
            offered=paper.positions.keys() if submission.node_id in offered else frozenset(),
            forged=bad,
            new=new[submission.node_id],
            stored=stored[submission.node_id].keys(),
            late=late,
        )
        for submission, bad in zip(submissions, forged, strict=True)
    ]
    _sign(receipts, submissions, paper, stored)
    return receipts


def _lay_out(judge_round: Round) -> Paper:
    positions = {str(asked.pk): asked.position for asked in offered_questions(judge_round.pk)}
    return Paper(judge_round.number, judge_round.commitment, positions)


def _sign(
    receipts: Iterable[Receipt], submissions: Iterable[Submission], paper: Paper, stored: ByNode
) -> None:
    """Sign for the answers that are stored as their nodes signed them."""
    key = None
    for receipt, submission in zip(receipts, submissions, strict=True):
        kept = stored[submission.node_id]
        answers = [
            answer
            for answer in submission.answers
            if answer.signature and kept.get(answer.question) == answer.signature
        ]
        if submission.signer is not None and answers:
            key = key or SiteKey.objects.latest("pk")
            receipt.signed = sign_receipt(
                paper,
                [paper.enter(answer, submission.signer) for answer in answers],
                received_at=submission.received_at,
                key=key,
            )


def _insert(
    submissions: Iterable[tuple[Submission, Set[str]]], *, seats: Mapping[int, Seat]
) -> defaultdict[int, set[str]]:
    """Insert the answers that have none yet to the questions with each; return these questions."""
    rows = [
        (
            answer.question,
            seat.node_id,
            answer.text,
            answer.finish_reason,
            submission.received_at,
            _latency_ms(seat, submission),
            submission.signer.key_id if answer.signature and submission.signer else None,
            answer.signature or "",
        )
        for submission, questions in submissions
        if (seat := seats.get(submission.node_id)) is not None
        for answer in submission.answers
        if answer.question in questions
    ]
    new: defaultdict[int, set[str]] = defaultdict(set)
    if not rows:
        return new
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO judge_answer
                (question_id, node_id, text, finish_reason, received_at, latency_ms, key_id,
                 signature, verdict)
            SELECT given.*, '' FROM unnest(
                %s::uuid[], %s::bigint[], %s::text[], %s::text[], %s::timestamptz[], %s::int[],
                %s::bigint[], %s::text[]
            ) AS given
            ON CONFLICT (question_id, node_id) DO NOTHING
            RETURNING node_id, question_id
            """,
            [list(column) for column in zip(*rows, strict=True)],
        )
        for node_id, question in cursor.fetchall():
            new[node_id].add(str(question))
    return new


def _latency_ms(seat: Seat, submission: Submission) -> int:
    """Return how long the node took since it was offered the questions."""
    assert seat.offered_at is not None  # only such seats are read
    return max(0, (submission.received_at - seat.offered_at) // timedelta(milliseconds=1))


def _read_stored(judge_round: Round, nodes: Iterable[int]) -> ByNode:
    """Return the questions of the round that these nodes have answered, with the signatures."""
    stored: ByNode = defaultdict(dict)
    answers = Answer.objects.filter(question__round=judge_round, node__in=list(nodes))
    for node_id, question, signature in answers.values_list("node_id", "question_id", "signature"):
        stored[node_id][str(question)] = signature
    return stored


def _complete(seats: Iterable[Seat], *, now: datetime) -> None:
    """Note that nobody needs to wait for these nodes any more."""
    pending = Seat.objects.filter(pk__in=[seat.pk for seat in seats], completed_at=None)
    pending.update(completed_at=now)


def _sort_answers(
    answers: Sequence[AnswerText],
    *,
    offered: Set[str],
    forged: Set[str],
    new: set[str],
    stored: Set[str],
    late: str,
) -> Receipt:
    """Say of each answer what became of it; the first of several to a question is the new one."""
    receipt = Receipt()
    for answer in answers:
        if answer.question not in offered:
            _reject(receipt, answer, ErrorCode.ANSWER_NOT_YOURS, "not offered to this node")
        elif answer.question in forged:
            _reject(receipt, answer, ErrorCode.ANSWER_SIGNATURE, "not signed by this node's key")
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
