"""The lab reports that this site publishes, read from the folders of the setting LAB_REPORTS.

Each subfolder with a `report.json` is a report with the subfolder's name. A file is read on first
use, and again after it has changed. Symbolic links are ignored: a report that another person
provided could otherwise link to any file of this machine and so publish it.
"""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from django.conf import settings

from swarm_web.lab.shape import LabSummaryAnswer, PublishedReport

logger = logging.getLogger(__name__)
# The largest file that is read, in bytes; a report of ten arms and ten seeds has about 500 kB.
MAX_BYTES = 8 << 20
# Names that are valid in an address.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.jsonl(\.gz)?")
_CACHED = 128

Read = TypeVar("Read")
# Tells versions of a file apart: times of modification and of status change (ns), and size (bytes).
State = tuple[int, int, int]
ParsedSummary = tuple[dict[str, LabSummaryAnswer], dict[str, Any]]


@dataclass(frozen=True)
class Unreadable:
    """The result of reading a file that cannot be read; `reason` is a text for people."""

    reason: str


@dataclass(frozen=True)
class ReportFolder:
    """A report's folder; `ours` is True if the folder is shipped with the site."""

    name: str
    folder: Path
    ours: bool

    def read(self) -> PublishedReport | Unreadable:
        """Return the content of the folder's `report.json`, or Unreadable if it cannot be read."""
        return _read(self.folder / "report.json", _read_report)

    @property
    def report(self) -> PublishedReport | None:
        """The content of the folder's `report.json`; None if it cannot be read."""
        found = self.read()
        return None if isinstance(found, Unreadable) else found

    def file(self, name: str) -> Path | None:
        """Return the path of the regular file with this name in the folder; None if there is none.

        A symbolic link is not a regular file.
        """
        path = self.folder / name
        return path if _is_plain(path) else None

    def runs(self) -> list[Path]:
        """Return the paths of the files of raw runs, sorted by name; empty if there are none."""
        folder = self.folder / "runs"
        try:
            found = [] if folder.is_symlink() else sorted(folder.iterdir())
        except OSError:
            return []
        return [path for path in found if _RUN.fullmatch(path.name) and _is_plain(path)]


@dataclass(frozen=True)
class LabSummary:
    """The summary of a folder's reports, from its `summary.json`.

    `answers` has the findings by question, and `content` is the complete decoded file. `ours` is
    True if the folder is shipped with the site.
    """

    folder: Path
    ours: bool
    answers: dict[str, LabSummaryAnswer]
    content: dict[str, Any]


def list_published() -> list[ReportFolder]:
    """Return the folders of all reports, sorted by name.

    If several folders of LAB_REPORTS have a report with the same name, the first folder wins.
    """
    found: dict[str, ReportFolder] = {}
    for folder in settings.LAB_REPORTS:
        ours = _is_ours(folder)
        for path in folder.glob("*/report.json"):
            name = path.parent.name
            if _NAME.fullmatch(name) and _is_plain(path) and not path.parent.is_symlink():
                found.setdefault(name, ReportFolder(name, path.parent, ours))
    return [found[name] for name in sorted(found)]


def find_published(name: str) -> ReportFolder | None:
    """Return the folder of the report with this name; None if there is none."""
    return next((each for each in list_published() if each.name == name), None)


def read_summary() -> LabSummary | None:
    """Return the summary of the first folder of LAB_REPORTS that has one.

    Returns None if no folder has a summary, or if the first one cannot be read.
    """
    for folder in settings.LAB_REPORTS:
        path = folder / "summary.json"
        if _is_plain(path):
            parsed = _read(path, _read_summary)
            if isinstance(parsed, Unreadable):
                return None
            return LabSummary(folder, _is_ours(folder), *parsed)
    return None


def read_bytes(path: Path) -> bytes:
    """Return a file's content. Raises OSError, and ValueError for more than MAX_BYTES."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    return content


def version_of(paths: Sequence[Path]) -> str | None:
    """Return an ETag that changes with any file's name, time or size; None if a file is missing."""
    try:
        states = [(path.name, (state := path.stat()).st_mtime_ns, state.st_size) for path in paths]
    except OSError:
        return None
    return f'"{blake2b(repr(states).encode(), digest_size=16).hexdigest()}"'


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_ours(folder: Path) -> bool:
    return folder.resolve() == settings.LAB_SHIPPED.resolve()


def _read(path: Path, read_once: Callable[[Path, State], Read | Unreadable]) -> Read | Unreadable:
    try:
        state = path.stat()
    except OSError as problem:
        return Unreadable(problem.strerror or str(problem))
    return read_once(path, (state.st_mtime_ns, state.st_ctime_ns, state.st_size))


@lru_cache(maxsize=_CACHED)
def _read_report(path: Path, _state: State) -> PublishedReport | Unreadable:
    return _decode(path, PublishedReport)


@lru_cache
def _read_summary(path: Path, _state: State) -> ParsedSummary | Unreadable:
    answers = _decode(path, dict[str, LabSummaryAnswer])
    if isinstance(answers, Unreadable):
        return answers
    raw = _decode(path, dict[str, Any])
    return raw if isinstance(raw, Unreadable) else (answers, raw)


def _decode(path: Path, kind: type[Read]) -> Read | Unreadable:
    """Decode a JSON file as `kind`; if that fails, log the reason and return Unreadable."""
    try:
        return msgspec.json.decode(read_bytes(path), type=kind)
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except RecursionError:
        reason = "it is nested too deeply"
    except (ValueError, msgspec.MsgspecError) as problem:
        reason = str(problem)
    logger.error(
        "%s cannot be read: %s. `swarm-node lab report` writes a report again from its runs, "
        "`swarm-node lab summary` a summary.",
        path,
        reason,
    )
    return Unreadable(reason)
