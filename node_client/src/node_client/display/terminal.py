"""Removes control characters from foreign text, so that it is safe to print on a terminal."""

import logging

LINE_CHARS = 240
LOG_CHARS = 1000


def clean(text: str) -> str:
    """Return a text without unprintable characters; line feeds and tabs are kept."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


def fold_line(text: str, *, limit: int = LINE_CHARS) -> str:
    """Return a text as one line.

    Unprintable characters become spaces. White space at the ends of the text is removed, and each
    run of white space within it becomes one space. If the result is longer than `limit` characters,
    the first `limit` are kept and an ellipsis is added.
    """
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(line.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


class LineFormatter(logging.Formatter):
    """Formats each record as one line without control characters, because logs quote foreign text.

    Records of level WARNING or higher begin with their level.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # logging's name
        """Return a record as one line, with its level if that is WARNING or higher."""
        record.message = fold_line(record.message, limit=LOG_CHARS)
        if record.levelno >= logging.WARNING:
            record.message = f"{record.levelname.lower()}: {record.message}"
        return super().formatMessage(record)
