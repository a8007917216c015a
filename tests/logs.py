"""What a log handler writes, and when: for tests of the filters that are put on it."""

import logging


class Written(logging.Handler):
    """A handler that keeps its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(self.format(record))


class Clock:
    """Seconds that the test counts."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now
