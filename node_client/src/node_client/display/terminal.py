"""Text of others on this machine's terminal."""

import logging

LINE_CHARS = 240
LOG_CHARS = 1000


def clean(text: str) -> str:
    """Return a text without what could steer the terminal: only line breaks and tabs stay."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


def fold_line(text: str, *, most: int = LINE_CHARS) -> str:
    """Return a text as one line of at most `most` characters and an ellipsis.

    White space is folded; control characters, which could steer the terminal, become spaces.
    """
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(line.split())
    return line if len(line) <= most else f"{line[:most]}…"


class LineFormatter(logging.Formatter):
    """Writes each record as one line that cannot steer a terminal, warnings marked as such.

    Log messages quote what a coordinator said.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # logging's name
        """Return the record's line."""
        record.message = fold_line(record.message, most=LOG_CHARS)
        if record.levelno >= logging.WARNING:
            record.message = f"{record.levelname.lower()}: {record.message}"
        return super().formatMessage(record)
