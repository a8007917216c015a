"""Files of one JSON object a line, which a crash may leave with half a line at their end."""

import os
from collections.abc import Iterable
from pathlib import Path


def append_lines(path: Path, lines: Iterable[bytes], *, durable: bool = False) -> None:
    """Append lines, given without their breaks, after the break that a crash may have cost.

    With `durable` it returns when they are on the disk. Raises OSError, such as for a full disk.
    """
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + b"".join(line + b"\n" for line in lines))
        if durable:
            file.flush()
            os.fsync(file.fileno())
