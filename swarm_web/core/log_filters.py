"""Log filters that replace repeated tracebacks with occasional single lines.

- `OutageFilter`: Postgres or Redis is unavailable. All code that needs the store fails, each time
  with a traceback of a hundred lines, but only the outage and its start matter.
- `RefusalFilter`: a request was refused. Anyone can send such requests, even with very long URLs.
  Django logs some of them with a traceback, uvicorn as warnings or errors. None is a fault of the
  site, so they are logged at level INFO.
"""

import logging
import time
from collections.abc import Callable

import kombu.exceptions
import redis.exceptions
from celery.beat import SchedulingError
from django import db

INTERVAL_S = 5.0


class RateLimitFilter(logging.Filter):
    """Shortens some records to one line each, and limits how many of them are written.

    The method `shorten` chooses the records. For each place in the code that logs them, at most one
    is written every `interval_s` seconds, with the number of records suppressed since the previous
    one. Other records are unchanged. `clock` returns seconds.
    """

    def __init__(
        self, *, interval_s: float = INTERVAL_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._clock = clock
        self._written_at: dict[tuple[str, int], float] = {}
        self._suppressed: dict[tuple[str, int], int] = {}

    def shorten(self, record: logging.LogRecord) -> str | None:
        """Return the line that replaces a record; None leaves the record unchanged."""
        raise NotImplementedError

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record; may shorten the record in place."""
        line = self.shorten(record)
        if line is None:
            return True
        location, now = (record.name, record.lineno), self._clock()
        if now - self._written_at.get(location, -self._interval_s) < self._interval_s:
            self._suppressed[location] = self._suppressed.get(location, 0) + 1
            return False
        self._written_at[location] = now
        more = self._suppressed.pop(location, 0)
        record.msg = line + (f" (and {more} times more)" if more else "")
        record.args = ()
        record.exc_info = record.exc_text = None
        return True


def first_line(text: str) -> str:
    """Return the first nonblank line of a text; empty if there is none."""
    return text.strip().partition("\n")[0]


# Errors that clients raise if a store is unavailable.
UNAVAILABLE_ERRORS = (
    db.OperationalError,
    db.InterfaceError,
    kombu.exceptions.OperationalError,
    redis.exceptions.ConnectionError,
    redis.exceptions.ClusterError,
    redis.exceptions.TimeoutError,
    SchedulingError,
)


class OutageFilter(RateLimitFilter):
    """Writes tracebacks about an unavailable store as single lines, at a limited rate."""

    def shorten(self, record: logging.LogRecord) -> str | None:
        """Return a line that says what failed, and why.

        Returns None if the record's exception is not one of UNAVAILABLE_ERRORS.
        """
        problem = record.exc_info[1] if record.exc_info else None
        if not isinstance(problem, UNAVAILABLE_ERRORS):
            return None
        message, why = first_line(record.getMessage()), first_line(str(problem))
        return message if why in message else f"{message}: {why}"


_MAX_LINE_LENGTH = 200
_UVICORN = {
    # Logged for every handshake that is answered by HTTP, as `swarm_web.gateway.denial` does
    # (https://github.com/Kludex/uvicorn/pull/3138).
    "ASGI callable returned without completing handshake.": "A websocket handshake was refused.",
    "Invalid HTTP request received.": "The data received is not an HTTP request.",
    "Unsupported upgrade request.": "The requested protocol is not supported.",
}


class RefusalFilter(RateLimitFilter):
    """Writes records of refused requests as single lines at level INFO, at a limited rate."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record.

        A record of a refusal is changed in place: its level becomes INFO, and it is shortened. It
        is written only if INFO is enabled, and at a limited rate. Other records are written
        unchanged.
        """
        if not _is_refusal(record):
            return True
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
        return logging.root.isEnabledFor(logging.INFO) and super().filter(record)

    def shorten(self, record: logging.LogRecord) -> str:
        """Return a line that says what was refused: the first line of the message, cut if long.

        The messages of uvicorn that this module lists are replaced by clearer ones.
        """
        message = record.getMessage()
        return first_line(_UVICORN.get(message, message))[:_MAX_LINE_LENGTH]


def _is_refusal(record: logging.LogRecord) -> bool:
    """Return whether Django answered with a 4xx status, or uvicorn refused a request."""
    if record.name == "uvicorn.error":
        return record.msg in _UVICORN
    return 400 <= getattr(record, "status_code", 500) < 500
