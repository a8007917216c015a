"""What a log handler writes, and when: for tests of the filters that are put on it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class Written(logging.Handler):
    """A handler that keeps its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(self.format(record))


@contextmanager
def logger_writing_to(handler: Written) -> Iterator[logging.Logger]:
    """Give a logger whose records reach this handler alone."""
    log = logging.getLogger("tests.logs")
    log.propagate = False
    log.addHandler(handler)
    try:
        yield log
    finally:
        log.removeHandler(handler)


class Clock:
    """Seconds that the test counts."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now
