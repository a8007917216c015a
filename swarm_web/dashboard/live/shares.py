"""Each address gets its share of the odd views that a process keeps fresh."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from swarm_web.dashboard.live.views import ViewKey

# An eighth of what a process keeps fresh in all (board.MAX_ODD_VIEWS).
MAX_ODD_VIEWS_EACH = 8


class TooManyViewsError(Exception):
    """As many odd views are kept fresh as may be; the message says for whom."""


class Shares:
    """Which odd views each address (`swarm_web.addresses`) watches, and in how many tabs."""

    def __init__(self) -> None:
        self._watched: dict[str, Counter[ViewKey]] = {}

    @contextmanager
    def hold(self, network: str, key: ViewKey) -> Iterator[None]:
        """Count a view for an address while the block runs. Raises TooManyViewsError."""
        if not key.is_odd:
            yield
            return
        watched = self._watched.setdefault(network, Counter())
        if key not in watched and len(watched) >= MAX_ODD_VIEWS_EACH:
            raise TooManyViewsError("too many filtered pages watched from your address")
        watched[key] += 1
        try:
            yield
        finally:
            watched[key] -= 1
            if not watched[key]:
                del watched[key]
            if not watched:
                del self._watched[network]
