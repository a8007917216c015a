"""The metrics file: one JSON object on a line for each training step. Its size is limited."""

import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from node_client.storage.lines import append_lines

# About 90,000 steps; with the previous file twice as many are kept.
MAX_BYTES = 64 * 2**20
# Bytes to read from the end of a file for its latest steps; 200 steps take a seventh of them.
_TAIL_BYTES = 1 << 20

log = logging.getLogger(__name__)


class _Line(msgspec.Struct):
    """A metrics line, reduced to the field that `begin` needs."""

    step: int


class _RewardLine(msgspec.Struct):
    """A metrics line, reduced to the fields that `read_rewards` needs."""

    step: int
    reward: float
    season: str


class MetricsFile:
    """Appends to `metrics.jsonl`, which is renamed to `metrics.1.jsonl` at MAX_BYTES bytes.

    A line that cannot be written, such as on a full disk, is lost, and training continues. Of
    several lost lines in a row, only the first causes a warning.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._path = path
        self._full = _full_of(path)
        self._clock = clock
        self._failing = False

    def begin(self, *, step: int) -> None:
        """Prepare the files for a run that continues after `step`.

        A run from the start has `step` 0. Lines of later steps are removed, because the run repeats
        these steps. An incomplete last line is removed too. If a file cannot be changed, only a
        warning is logged.
        """
        try:
            for path in (self._full, self._path):
                if path.exists():
                    _cut_after(path, step=step)
        except OSError as problem:
            log.warning("%s may contain steps twice: %s", self._path, problem)

    def log(self, figures: Mapping[str, float | str], *, step: int) -> None:
        """Append a step's line: `step`, the current `time` (ISO 8601, UTC), and `figures`."""
        time = self._clock().isoformat(timespec="milliseconds")
        line = {"step": step, "time": time, **figures}
        try:
            if self._path.exists() and self._path.stat().st_size >= MAX_BYTES:
                os.replace(self._path, self._full)
            append_lines(self._path, [line])
        except OSError as problem:
            if not self._failing:
                log.warning("metrics are not written: %s", problem)
            self._failing = True
        else:
            self._failing = False

    def close(self) -> None:
        """Do nothing: `log` has written every line."""


def set_aside(path: Path, *, until: str) -> None:
    """Rename the metrics files of an earlier run, with `until` in their names. Raises OSError.

    They become `metrics-UNTIL.jsonl` and `metrics-UNTIL.1.jsonl`.
    """
    aside = path.with_stem(f"{path.stem}-{until}")
    for file, name in ((path, aside), (_full_of(path), _full_of(aside))):
        if file.exists():
            os.replace(file, name)


def read_rewards(path: Path, *, season: str, limit: int) -> list[float]:
    """Return the training rewards of the latest steps in `season`, oldest first, at most `limit`.

    Steps are read from the newest backwards, up to the first step of another season. If the file
    has too few steps, the one before it (`metrics.1.jsonl`) is read as well, but only the last MiB
    of each. A line that cannot be decoded, or a file that cannot be read, is skipped.
    """
    rewards: list[float] = []
    for file in (path, _full_of(path)):
        for line in reversed(_read_tail(file)):
            try:
                record = msgspec.json.decode(line, type=_RewardLine)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if record.season != season or len(rewards) == limit:
                return rewards[::-1]
            rewards.append(record.reward)
    return rewards[::-1]


def _read_tail(path: Path) -> list[bytes]:
    """Return the lines in the last _TAIL_BYTES of a file; an empty list if it cannot be read.

    The first line may be incomplete.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read().splitlines()
    except OSError:
        return []


def _full_of(path: Path) -> Path:
    """Return the path to which the file `path` is renamed when it is full."""
    return path.with_suffix(f".1{path.suffix}")


def _cut_after(path: Path, *, step: int) -> None:
    """Truncate a file before its first line that is incomplete or has a later step than `step`."""
    kept = 0
    with path.open("r+b") as file:
        for line in file:
            if not line.endswith(b"\n") or _step_of(line) > step:
                break
            kept += len(line)
        file.truncate(kept)


def _step_of(line: bytes) -> int:
    """Return a line's step; 0 for a line that cannot be read, so that it is kept."""
    try:
        return msgspec.json.decode(line, type=_Line).step
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0
