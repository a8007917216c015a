"""The downloads of a closed round: its answers, and what its season asked in earlier rounds."""

from collections.abc import Iterator, Sequence

from django.http import Http404
from django.utils.translation import gettext_lazy as _

from judge.models import Answer, Round
from judge.repeats import numbers_before, read_asked_rounds
from swarm_tasks.asked import encode_digests
from swarm_web.core.errors import RequestError
from swarm_web.dashboard.downloads.batches import read_batches
from swarm_web.dashboard.downloads.formats import Column, ColumnKind, Row
from swarm_web.dashboard.reports.round import load_revealed_round

ANSWER_COLUMNS = (
    Column("node", ColumnKind.TEXT, _("The node's name."), "node__name"),
    Column(
        "question", ColumnKind.TEXT, _("The question's id in /api/v1/rounds/<n>."), "question_id"
    ),
    Column("text", ColumnKind.TEXT, _("The node's answer, unchanged.")),
    Column("finish_reason", ColumnKind.TEXT, _("stop, or length if the answer was cut off.")),
    Column("received_at", ColumnKind.TIME, _("When the answer arrived, ISO 8601 in UTC.")),
    Column(
        "latency_ms",
        ColumnKind.WHOLE,
        _("Milliseconds from sending the questions to receiving the answer."),
    ),
    Column("score", ColumnKind.FRACTION, _("The judge's score of the answer, from 0 to 1.")),
    Column("solved", ColumnKind.TRUTH, _("Whether that score counts as solved.")),
    Column("verdict", ColumnKind.TEXT, _("The judge's reason as one word, such as right.")),
    Column(
        "key",
        ColumnKind.TEXT,
        _("The public key the node signed with; empty if it did not sign."),
        "key__public",
    ),
    Column("signature", ColumnKind.TEXT, _("The node's Ed25519 signature, in hex.")),
)
ASKED_COLUMNS = (
    Column("round", ColumnKind.WHOLE, _("The number of an earlier round of the season.")),
    Column(
        "entry", ColumnKind.TEXT, _("SHA-256 of seal and digests: the round's link in the chain.")
    ),
    Column(
        "seal",
        ColumnKind.TEXT,
        _("The value that hides the digests; missing while the round is sealed."),
    ),
    Column(
        "questions",
        ColumnKind.TEXT,
        _(
            "The first 16 hexadecimal digits of the SHA-256 of each question's text; missing "
            "while the round is sealed."
        ),
    ),
)
_FIELDS = tuple(column.field for column in ANSWER_COLUMNS)


def read_answers(number: int) -> Iterator[Sequence[Row]]:
    """Yield a round's answers in batches of rows of ANSWER_COLUMNS.

    The answers are sorted by the node's name and the question's position. Raises RequestError if
    there is no such round, or if its questions are not public.
    """
    answers = Answer.objects.filter(question__round=find_revealed(number))
    nodes = answers.order_by("node__name").values_list("node", flat=True).distinct()

    def select(keys: Sequence[int]) -> list[Row]:
        selected = answers.filter(node__in=keys).order_by("node__name", "question__position")
        return list(selected.values_list(*_FIELDS))

    return read_batches(list(nodes), select)


def find_revealed(number: int) -> Round:
    """Return the round with this number.

    Raises RequestError if there is no such round, or if its questions are not public.
    """
    try:
        return load_revealed_round(number, status_at=f"/api/v1/rounds/{number}")
    except Http404 as problem:
        raise RequestError(
            "not_found",
            f"There is no round {number}.",
            fix="List what there is with /api/v1/rounds.",
            status=404,
        ) from problem


def read_asked(number: int) -> Iterator[Sequence[Row]]:
    """Yield, in batches, a row for each earlier round in the season of round `number`.

    A row has the values of ASKED_COLUMNS. The earliest round is first. Void rounds are included.
    Raises RequestError if there is no round `number`, or if the questions of this round are not
    public.
    """
    return read_batches(numbers_before(find_revealed(number)), _select_asked)


def _select_asked(numbers: Sequence[int]) -> list[Row]:
    return [
        (
            earlier.number,
            earlier.entry.hex(),
            earlier.seal.hex() if earlier.seal else None,
            encode_digests(earlier.digests).hex() if earlier.seal else None,
        )
        for earlier in read_asked_rounds(numbers)
    ]
