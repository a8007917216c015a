"""Text of others on this machine's terminal."""

LINE_CHARS = 240


def fold_line(text: str, *, most: int = LINE_CHARS) -> str:
    """Return a text as one line of at most `most` characters and an ellipsis.

    White space is folded; control characters, which could steer the terminal, become spaces.
    """
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(line.split())
    return line if len(line) <= most else f"{line[:most]}…"
