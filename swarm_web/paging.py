"""What a page of the leaderboard is asked for: which rows, and after which place; pure.

Pages are told apart by the place after which they begin (`Standing.place`), not by how many rows
to skip, so the last page costs what the first one does, and all visitors of a page ask the same.
A cursor is valid for one set of filters, and goes on where it pointed when the order has changed.
"""

from dataclasses import dataclass

PAGE_ROWS = 50
_LARGEST_PLACE = 2**31 - 1


@dataclass(frozen=True)
class Filters:
    """Which nodes are listed; empty texts ask for all.

    `arm` base lists untrained models, which are otherwise shown beside the others. `owner` is an
    account's name, `search` a part of the node's.
    """

    model: str = ""
    arm: str = ""
    owner: str = ""
    search: str = ""

    def __bool__(self) -> bool:
        """Tell whether anything is asked for."""
        return any((self.model, self.arm, self.owner, self.search))


EVERYBODY = Filters()


def encode_cursor(place: int) -> str:
    """Return the cursor of the page that begins after a place; empty for the first page."""
    return str(place) if place else ""


def decode_cursor(text: str) -> int:
    """Return the place after which a page begins. Raises ValueError."""
    if not text:
        return 0
    if text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST_PLACE)):
        return min(int(text), _LARGEST_PLACE)
    raise ValueError(f"not a cursor of the leaderboard: {text[:20]!r}")
