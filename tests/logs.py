"""Helpers for tests of log filters: a recording handler and a manual clock."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class Written(logging.Handler):
    """A handler that records its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Record a line."""
        self.lines.append(self.format(record))


@contextmanager
def logger_writing_to(handler: Written) -> Iterator[logging.Logger]:
    """Yield a logger whose records reach only this handler."""
    log = logging.getLogger("tests.logs")
    log.propagate = False
    log.addHandler(handler)
    try:
        yield log
    finally:
        log.removeHandler(handler)


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now
