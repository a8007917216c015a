"""Log filters: one line now and then for what the log would otherwise repeat, without tracebacks.

- `OutageFilter`: Postgres or Redis is away. Everything that needs a store fails meanwhile, each
  time with a hundred lines of traceback. What matters is that the store is away, and since when.
- `RefusalFilter`: a request was refused. Anybody can send such requests, with as long an address
  as the server reads. Django logs some with a traceback, uvicorn as warnings or errors; none is a
  fault of the site, so they are logged at the level INFO.
"""

import logging
import time
from collections.abc import Callable

import kombu.exceptions
import redis.exceptions
from celery.beat import SchedulingError
from django import db

EVERY_S = 5.0


class SpacedFilter(logging.Filter):
    """Write records that `shorten` knows as one line each, for the handler it is put on.

    Each place in the code writes at most one line every `every_s` seconds, with the number of
    suppressed records. `clock` counts seconds.
    """

    def __init__(
        self, *, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._written_at: dict[tuple[str, int], float] = {}
        self._suppressed: dict[tuple[str, int], int] = {}

    def shorten(self, record: logging.LogRecord) -> str | None:
        """Return the line in the place of a record; None for one that is written as it is."""
        raise NotImplementedError

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is written, which may shorten it."""
        line = self.shorten(record)
        if line is None:
            return True
        place, now = (record.name, record.lineno), self._clock()
        if now - self._written_at.get(place, -self._every_s) < self._every_s:
            self._suppressed[place] = self._suppressed.get(place, 0) + 1
            return False
        self._written_at[place] = now
        more = self._suppressed.pop(place, 0)
        record.msg = line + (f" (and {more} times more)" if more else "")
        record.args = ()
        record.exc_info = record.exc_text = None
        return True


def first_line(text: str) -> str:
    """Return the first line that says something."""
    return text.strip().partition("\n")[0]


# How clients say that a store is away.
AWAY = (
    db.OperationalError,
    db.InterfaceError,
    kombu.exceptions.OperationalError,
    redis.exceptions.ConnectionError,
    redis.exceptions.ClusterError,
    redis.exceptions.TimeoutError,
    SchedulingError,
)


class OutageFilter(SpacedFilter):
    """Turn the traceback of a store that is away into one line."""

    def shorten(self, record: logging.LogRecord) -> str | None:
        """Say what failed, and why."""
        problem = record.exc_info[1] if record.exc_info else None
        if not isinstance(problem, AWAY):
            return None
        said, why = first_line(record.getMessage()), first_line(str(problem))
        return said if why in said else f"{said}: {why}"


_LONGEST_LINE = 200
_UVICORN = {
    # Told of every handshake that is answered by HTTP, as `swarm_web.gateway.denial` does
    # (https://github.com/Kludex/uvicorn/pull/3138).
    "ASGI callable returned without completing handshake.": "A websocket handshake was refused.",
    "Invalid HTTP request received.": "What came is no HTTP request.",
    "Unsupported upgrade request.": "A protocol was asked for that is not spoken here.",
}


class RefusalFilter(SpacedFilter):
    """Turn what is logged of a refused request into one line at the level INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is written: refusals only where INFO is."""
        if not _is_refusal(record):
            return True
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
        return logging.root.isEnabledFor(logging.INFO) and super().filter(record)

    def shorten(self, record: logging.LogRecord) -> str:
        """Say what was refused."""
        said = record.getMessage()
        return first_line(_UVICORN.get(said, said))[:_LONGEST_LINE]


def _is_refusal(record: logging.LogRecord) -> bool:
    """Tell whether Django answered 4xx, which it notes on the record, or uvicorn refused."""
    if record.name == "uvicorn.error":
        return record.msg in _UVICORN
    return 400 <= getattr(record, "status_code", 500) < 500
