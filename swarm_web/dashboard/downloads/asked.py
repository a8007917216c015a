"""What a round's season had asked before, for whoever draws the round's questions again."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext_lazy as _

from judge.repeats import numbers_before, read_asked_rounds
from swarm_tasks.asked import encode_digests
from swarm_web.dashboard.downloads.answers import find_revealed
from swarm_web.dashboard.downloads.batches import Row, read_batches
from swarm_web.dashboard.downloads.columns import Column, Kind

COLUMNS = (
    Column("round", "number", Kind.WHOLE, _("The number of an earlier round of the season.")),
    Column(
        "entry",
        "entry",
        Kind.TEXT,
        _("SHA-256 of seal and digests: the round's link in the chain."),
    ),
    Column(
        "seal",
        "seal",
        Kind.TEXT,
        _("The value that hides the digests; missing while the round is sealed."),
    ),
    Column(
        "questions",
        "digests",
        Kind.TEXT,
        _(
            "The first 16 hexadecimal digits of the SHA-256 of each question's text; "
            "missing while the round is sealed."
        ),
    ),
)


def read_asked(number: int) -> Iterator[Sequence[Row]]:
    """Yield rows of COLUMNS of the earlier rounds of a round's season, void ones too, in order.

    Raises RequestError when there is no such round, or it has not closed.
    """
    return read_batches(numbers_before(find_revealed(number)), _select)


def _select(numbers: Sequence[int]) -> list[Row]:
    return [
        (
            told.number,
            told.entry.hex(),
            told.seal.hex() if told.seal else None,
            encode_digests(told.digests).hex() if told.seal else None,
        )
        for told in read_asked_rounds(numbers)
    ]
