"""Safe output of foreign text on a terminal."""

import logging

LINE_CHARS = 240
LOG_CHARS = 1000


def clean(text: str) -> str:
    """Return a text without control characters, except line breaks and tabs."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


def fold_line(text: str, *, limit: int = LINE_CHARS) -> str:
    """Return a text as one line of at most `limit` characters and an ellipsis.

    White space is folded, and control characters become spaces.
    """
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(line.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


class LineFormatter(logging.Formatter):
    """Formats each record as one line without control characters; warnings are marked.

    Log messages quote text from coordinators.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # logging's name
        """Return the record's line."""
        record.message = fold_line(record.message, limit=LOG_CHARS)
        if record.levelno >= logging.WARNING:
            record.message = f"{record.levelname.lower()}: {record.message}"
        return super().formatMessage(record)
