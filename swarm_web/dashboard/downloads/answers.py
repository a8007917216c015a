"""Every answer of a closed round, one JSON object a line."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext_lazy as _

from judge.models import Answer, Round
from swarm_web.dashboard.downloads.batches import Row, read_batches
from swarm_web.dashboard.downloads.columns import Column, Kind
from swarm_web.errors import RequestError

COLUMNS = (
    Column("node", "node__name", Kind.TEXT, _("The node's name.")),
    Column("question", "question_id", Kind.TEXT, _("The question's id in /api/v1/rounds/<n>.")),
    Column("text", "text", Kind.TEXT, _("The node's answer, unchanged.")),
    Column(
        "finish_reason", "finish_reason", Kind.TEXT, _("stop, or length if the answer was cut off.")
    ),
    Column("received_at", "received_at", Kind.TIME, _("When the answer arrived, ISO 8601 in UTC.")),
    Column(
        "latency_ms",
        "latency_ms",
        Kind.WHOLE,
        _("Milliseconds from sending the questions to receiving the answer."),
    ),
    Column("score", "score", Kind.FRACTION, _("The judge's score of the answer, from 0 to 1.")),
    Column("solved", "solved", Kind.TRUTH, _("Whether that score counts as solved.")),
    Column("verdict", "verdict", Kind.TEXT, _("The judge's reason as one word, such as right.")),
    Column(
        "key",
        "key__public",
        Kind.TEXT,
        _("The public key the node signed with; empty if it did not sign."),
    ),
    Column("signature", "signature", Kind.TEXT, _("The node's Ed25519 signature, in hex.")),
)
_FIELDS = tuple(column.field for column in COLUMNS)


def read_answers(number: int) -> Iterator[Sequence[Row]]:
    """Yield rows of COLUMNS of a round by node's name and question's position.

    Raises RequestError when there is no such round, or it has not closed.
    """
    return _read(find_revealed(number))


def find_revealed(number: int) -> Round:
    """Return a round that has closed. Raises RequestError."""
    judge_round = Round.objects.filter(number=number).select_related("season").first()
    if judge_round is None:
        raise RequestError(
            "not_found",
            f"There is no round {number}.",
            fix="List what there is with /api/v1/rounds.",
            status=404,
        )
    if not judge_round.is_revealed:
        raise RequestError(
            "round.sealed",
            f"Round {number} is sealed: it has not closed.",
            fix=f"Ask again when /api/v1/rounds/{number} says that it is closed.",
            status=409,
        )
    return judge_round


def _read(judge_round: Round) -> Iterator[Sequence[Row]]:
    answers = Answer.objects.filter(question__round=judge_round)
    nodes = answers.order_by("node__name").values_list("node", flat=True).distinct()

    def select(some: Sequence[int]) -> list[Row]:
        few = answers.filter(node__in=some).order_by("node__name", "question__position")
        return list(few.values_list(*_FIELDS))

    return read_batches(list(nodes), select)
