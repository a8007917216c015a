"""What the log would say again and again: one line now and then, with how often it happened."""

import logging
import time
from collections.abc import Callable

EVERY_S = 5.0


class SpacedFilter(logging.Filter):
    """Write records that `shorten` knows as one line each, for the handler it is put on.

    Each place in the code tells at most every `every_s` seconds, and then how often it was silent
    meanwhile. `clock` counts seconds.
    """

    def __init__(
        self, *, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._told_at: dict[tuple[str, int], float] = {}
        self._held_back: dict[tuple[str, int], int] = {}

    def shorten(self, record: logging.LogRecord) -> str | None:
        """Return the line in the place of a record; None for one that is written as it is."""
        raise NotImplementedError

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is written, which may shorten it."""
        line = self.shorten(record)
        if line is None:
            return True
        place, now = (record.name, record.lineno), self._clock()
        if now - self._told_at.get(place, -self._every_s) < self._every_s:
            self._held_back[place] = self._held_back.get(place, 0) + 1
            return False
        self._told_at[place] = now
        more = self._held_back.pop(place, 0)
        record.msg = line + (f" (and {more} times more)" if more else "")
        record.args = ()
        record.exc_info = record.exc_text = None
        return True


def first_line(text: str) -> str:
    """Return the first line that says something."""
    return text.strip().partition("\n")[0]
