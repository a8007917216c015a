"""Files with one JSON object per line; a crash may leave an incomplete last line."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from node_client.errors import SettingsError
from node_client.storage.state import write_private

Line = TypeVar("Line", bound=msgspec.Struct)

_encoder = msgspec.json.Encoder()

log = logging.getLogger(__name__)


def append_lines(path: Path, records: Iterable[object], *, durable: bool = False) -> None:
    """Append records to a file, one line of JSON for each record.

    The file is created if needed. If a crash left its last line incomplete, a line break is added
    first. If `durable` is true, the lines are on the disk when this returns. Raises OSError, for
    example if the disk is full.
    """
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + _encoder.encode_lines(records))
        if durable:
            file.flush()
            os.fsync(file.fileno())


def replace_lines(path: Path, records: Iterable[object]) -> None:
    """Replace a file's content atomically with these records, one per line. Raises OSError."""
    write_private(path, _encoder.encode_lines(records))


def read_lines(path: Path, kind: type[Line]) -> list[Line]:
    """Return the lines of a file, each decoded as `kind`; an empty list if there is no file.

    A line that cannot be decoded is skipped with a warning. Raises SettingsError when the file
    exists and cannot be read.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise SettingsError(
            f"{path} cannot be read: {problem.strerror or problem}.",
            fix="Check its permissions, or choose another folder with --state-dir.",
        ) from problem
    lines = []
    for text in raw.splitlines():
        try:
            lines.append(msgspec.json.decode(text, type=kind))
        except (msgspec.DecodeError, UnicodeDecodeError):
            log.warning("%s has a line that cannot be read; it is skipped", path)
    return lines
