"""What the logs say while Postgres or Redis is away: one line now and then, not a flood.

Everything that needs a store fails while it is away, each time with a hundred lines of traceback
that always say the same. What matters is that it is away, and since when.
"""

import logging
import time
from collections.abc import Callable

import kombu.exceptions
import redis.exceptions
from celery.beat import SchedulingError
from django import db

# How clients say that a store is away.
AWAY = (
    db.OperationalError,
    db.InterfaceError,
    kombu.exceptions.OperationalError,
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    SchedulingError,
)
EVERY_S = 5.0


class OutageFilter(logging.Filter):
    """Turn the traceback of a store that is away into one line, for the handler it is put on.

    Each place in the code tells it at most every `every_s` seconds, and then how often it held its
    tongue meanwhile. `clock` counts seconds.
    """

    def __init__(
        self, *, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._told_at: dict[tuple[str, int], float] = {}
        self._held_back: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is written, which may shorten it."""
        problem = record.exc_info[1] if record.exc_info else None
        if not isinstance(problem, AWAY):
            return True
        place, now = (record.name, record.lineno), self._clock()
        if now - self._told_at.get(place, -self._every_s) < self._every_s:
            self._held_back[place] = self._held_back.get(place, 0) + 1
            return False
        self._told_at[place] = now
        said, why = _first_line(record.getMessage()), _first_line(str(problem))
        more = self._held_back.pop(place, 0)
        record.msg = said if why in said else f"{said}: {why}"
        record.msg += f" (and {more} times more)" if more else ""
        record.args = ()
        record.exc_info = record.exc_text = None
        return True


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
