"""Lets nodes take seats, and stores the answers that they submit.

A thousand nodes may submit at the same moment, so answers of many nodes are stored together in
plain SQL: five statements in one transaction, however many nodes there are (`make bench-judge`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import connection, transaction

from judge.engine import Deadlines, Phase, accepts_answers, lost_time
from judge.models import Answer, Question, Round, Season, Seat, SiteKey
from judge.services.receipts import Signer, SigningContext, find_forged, sign_receipt
from swarm_protocol.errors import FIXES, ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText, Rejected, SignedReceipt
from swarm_web.nodes.models import Node


def take_seat(node: Node, *, number: int, now: datetime) -> Round:
    """Record that a node was offered an open round's questions, and return the round.

    Raises RefusedError if the round does not exist or accepts no answers now. Also raises it if the
    node was not invited and must wait for the next round; its seat is then marked `came_late`.
    """
    judge_round = _get_round(number)
    with transaction.atomic():
        if not accepts_answers(*_lock_round(judge_round, now=now), now=now):
            raise RefusedError(
                ErrorCode.ROUND_NOT_OPEN, f"round {number} does not accept answers now"
            )
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
    """Tell whether a node that was not invited must wait for the next round.

    It must if the season says so, or if another node of its owner was already offered the
    questions. Otherwise the owner could read the questions first, and let the other nodes join only
    the rounds that suit them.
    """
    if judge_round.season.late_joiners == Season.LateJoiners.WAIT:
        return True
    # The node was loaded when it connected, and may have been given an owner since.
    owner = Node.objects.filter(pk=node.pk).exclude(owner=None).values("owner")
    taken = Seat.objects.filter(round=judge_round, node__owner__in=owner)
    return taken.exclude(offered_at=None).exists()


def _get_round(number: int) -> Round:
    try:
        return Round.objects.select_related("season").get(number=number)
    except Round.DoesNotExist:
        raise RefusedError(ErrorCode.ROUND_UNKNOWN, f"there is no round {number}") from None


def _lock_round(judge_round: Round, *, now: datetime) -> tuple[Phase, Deadlines]:
    """Return a round's phase and deadlines, and block changes of phase until the transaction ends.

    The lock is shared: nodes that submit concurrently do not wait for each other, only the change
    of phase waits for them. The deadlines are read from the database, because an outage may have
    extended them. If the judge's clock stood still and no tick has saved the extension for this
    (`lost_time`) yet, the extension is added here.
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
    return Phase(phase), Deadlines(*deadlines).extend(lost_time(watched_at, now=now))


@lru_cache(maxsize=64)
def offered_questions(round_id: int) -> tuple[Question, ...]:
    """Return a round's questions, in order; cached, because they never change once they are drawn.

    Raises RefusedError, which is not cached, if the round has no questions yet.
    """
    questions = tuple(Question.objects.filter(round_id=round_id).order_by("position"))
    if not questions:
        raise RefusedError(ErrorCode.ROUND_NOT_OPEN, "the round has no questions yet")
    return questions


# Signatures of stored answers (empty for unsigned ones), by node id and question id.
Signatures = defaultdict[int, dict[str, str]]


@dataclass(frozen=True)
class Submission:
    """Answers that a node submitted to round `number`; `signer` is None if the node has no key."""

    node_id: int
    number: int
    answers: Sequence[AnswerText]
    received_at: datetime
    signer: Signer | None = None


@dataclass
class Receipt:
    """The outcome of each answer of a submission; answers are identified by question id.

    An `accepted` answer was stored now. A `duplicate` was not, because the node already has a
    stored answer to the question. `signed` is the site's signed receipt for the submitted answers
    that are stored with the same signature; None if there are none.
    """

    accepted: list[str] = field(default_factory=list)
    duplicate: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    signed: SignedReceipt | None = None


def store_submissions(submissions: Sequence[Submission]) -> list[Receipt | RefusedError]:
    """Store answers and return the outcome of each submission, in the order given.

    The outcome is a RefusedError if the submission's round is unknown or has no questions yet.
    Otherwise it is a Receipt, which lists accepted, duplicate and rejected answers. A node's first
    answer to a question counts; repeats change nothing. An answer is rejected in three cases:

    - Its question was not offered to the node.
    - It has a signature that is not the node's.
    - It arrives after answering has ended, and the node has no stored answer to the question.
    """
    outcomes: dict[int, Receipt | RefusedError] = {}
    for number in {submission.number for submission in submissions}:
        indexes = [i for i, submission in enumerate(submissions) if submission.number == number]
        in_round = [submissions[i] for i in indexes]
        outcomes |= zip(indexes, _store_in_round(number, in_round), strict=True)
    return [outcomes[i] for i in range(len(submissions))]


def _store_in_round(
    number: int, submissions: Sequence[Submission]
) -> Sequence[Receipt | RefusedError]:
    try:
        judge_round = _get_round(number)
        context = _signing_context(judge_round)
    except RefusedError as refusal:
        return [refusal] * len(submissions)
    forged = [find_forged(context, each.answers, each.signer) for each in submissions]
    nodes = {submission.node_id for submission in submissions}
    now = max(submission.received_at for submission in submissions)
    with transaction.atomic():
        phase, deadlines = _lock_round(judge_round, now=now)
        # Locked against a second sender with the same token; ordered, so that batches never
        # deadlock.
        seats = Seat.objects.select_for_update().filter(round=judge_round, node__in=nodes)
        offered = {s.node_id: s for s in seats.exclude(offered_at=None).order_by("pk")}
        in_time = [
            (submission, context.positions.keys() - bad)
            for submission, bad in zip(submissions, forged, strict=True)
            if accepts_answers(phase, deadlines, now=submission.received_at)
        ]
        new = _insert(in_time, seats=offered)
        stored = _read_stored(judge_round, offered)
        completed = [
            seat.pk
            for node, seat in offered.items()
            if node in new and len(stored[node]) == len(context.positions)
        ]
        Seat.objects.filter(pk__in=completed, completed_at=None).update(completed_at=now)
    late = f"round {number} accepted answers until {deadlines.closes_at.isoformat()}"
    receipts = [
        _build_receipt(
            submission.answers,
            offered=context.positions.keys() if submission.node_id in offered else frozenset(),
            forged=bad,
            new=new[submission.node_id],
            stored=stored[submission.node_id].keys(),
            late=late,
        )
        for submission, bad in zip(submissions, forged, strict=True)
    ]
    _sign(receipts, submissions, context, stored)
    return receipts


def _signing_context(judge_round: Round) -> SigningContext:
    positions = {str(asked.pk): asked.position for asked in offered_questions(judge_round.pk)}
    return SigningContext(judge_round.number, judge_round.commitment, positions)


def _sign(
    receipts: Iterable[Receipt],
    submissions: Iterable[Submission],
    context: SigningContext,
    stored: Signatures,
) -> None:
    """Set `signed` of each receipt to the site's signed receipt.

    A signed receipt covers those answers of the submission that are stored with the node's
    signature. If there are none, `signed` is not set. A rejected answer is left out: it may have
    the signature of the stored answer with another text.
    """
    key = None
    for receipt, submission in zip(receipts, submissions, strict=True):
        kept = stored[submission.node_id]
        rejected = {each.item for each in receipt.rejected}
        answers = [
            answer
            for answer in submission.answers
            if answer.signature
            and answer.question not in rejected
            and kept.get(answer.question) == answer.signature
        ]
        if submission.signer is not None and answers:
            key = key or SiteKey.objects.latest("pk")
            receipt.signed = sign_receipt(
                context,
                [context.make_entry(answer, submission.signer) for answer in answers],
                received_at=submission.received_at,
                key=key,
            )


def _insert(
    submissions: Iterable[tuple[Submission, Set[str]]], *, seats: Mapping[int, Seat]
) -> defaultdict[int, set[str]]:
    """Insert answers that are not stored yet; return the ids of their questions, by node id.

    Each submission comes with the ids of the questions whose answers may be stored. `seats` maps
    node ids to seats; the answers of a node that has no seat, or was not offered the questions, are
    skipped. An answer is also skipped if the node already has a stored answer to the question.
    """
    rows = [
        (
            answer.question,
            seat.node_id,
            answer.text,
            answer.finish_reason,
            submission.received_at,
            max(0, (submission.received_at - seat.offered_at) // timedelta(milliseconds=1)),
            submission.signer.key_id if answer.signature and submission.signer else None,
            answer.signature or "",
        )
        for submission, questions in submissions
        if (seat := seats.get(submission.node_id)) and seat.offered_at
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


def _read_stored(judge_round: Round, nodes: Iterable[int]) -> Signatures:
    """Return the signatures of these nodes' stored answers in the round, by node and question."""
    stored: Signatures = defaultdict(dict)
    answers = Answer.objects.filter(question__round=judge_round, node__in=list(nodes))
    for node_id, question, signature in answers.values_list("node_id", "question_id", "signature"):
        stored[node_id][str(question)] = signature
    return stored


def _build_receipt(
    answers: Sequence[AnswerText],
    *,
    offered: Set[str],
    forged: Set[str],
    new: set[str],
    stored: Set[str],
    late: str,
) -> Receipt:
    """Return the unsigned receipt for a submission's answers.

    All sets contain question ids. `stored` has all questions to which the node has a stored answer,
    and `new` those whose answer was just stored. The first answer to a question in `new` is
    accepted, and the question is removed from `new`, so that a second answer is a duplicate. An
    answer to an offered question that has no stored answer came too late: it is rejected with the
    message `late`.
    """
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
