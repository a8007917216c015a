"""The metrics file: one line of JSON for each training step, bounded and never twice the same."""

import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from node_client.storage.lines import append_lines

# Some 90,000 steps; with the file before it twice as many are kept.
MOST_BYTES = 64 * 2**20
# What is read of a file's end for its latest steps: 200 of them take a third of it.
_TAIL_BYTES = 1 << 20

log = logging.getLogger(__name__)


class _Line(msgspec.Struct):
    """What must be known of a line to tell whether it stays."""

    step: int


class _Reward(msgspec.Struct):
    """What is read of a line for the curve of training rewards."""

    step: int
    reward: float
    season: str


class MetricsFile:
    """Appends to `metrics.jsonl`, which becomes `metrics.1.jsonl` when it is full.

    Both hold lines of one run only: those of the run before it are `set_aside`. A full disk costs
    lines, not the training: the first one that is lost is logged.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._path = path
        self._full = _full_of(path)
        self._clock = clock
        self._failing = False

    def begin(self, *, step: int) -> None:
        """Go on after this step: cut off the lines of later ones, which a resumed run makes again.

        A line that a crash tore is cut off too. At step 0 none is left: the steps were never saved.
        """
        try:
            for path in (self._full, self._path):
                if path.exists():
                    _cut_after(path, step=step)
        except OSError as problem:
            log.warning("%s may hold steps twice: %s", self._path, problem)

    def log(self, figures: Mapping[str, float | str], *, step: int) -> None:
        """Append one step's line; `time` is when it was written, ISO 8601 in UTC."""
        time = self._clock().isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"step": step, "time": time, **figures})
        try:
            if self._path.exists() and self._path.stat().st_size >= MOST_BYTES:
                os.replace(self._path, self._full)
            append_lines(self._path, [line])
        except OSError as problem:
            if not self._failing:
                log.warning("metrics are not written: %s", problem)
            self._failing = True
        else:
            self._failing = False

    def close(self) -> None:
        """Do nothing: every line was handed to the system as it came."""


def set_aside(path: Path, *, until: str) -> None:
    """Rename the metrics files of a run that has ended to `metrics-UNTIL.jsonl` and the like."""
    aside = path.with_stem(f"{path.stem}-{until}")
    for file, name in ((path, aside), (_full_of(path), _full_of(aside))):
        if file.exists():
            os.replace(file, name)


def read_rewards(path: Path, *, season: str, most: int) -> list[float]:
    """Return the training rewards of the latest steps in a season, at most so many, in order.

    Reads no more than the ends of the two files. Lines that cannot be read are passed over.
    """
    rewards: list[float] = []
    for file in (path, _full_of(path)):
        for line in reversed(_read_tail(file)):
            try:
                made = msgspec.json.decode(line, type=_Reward)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if made.season != season or len(rewards) == most:
                return rewards[::-1]
            rewards.append(made.reward)
    return rewards[::-1]


def _read_tail(path: Path) -> list[bytes]:
    """Return the last lines of a file; of one that cannot be read, none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read().splitlines()
    except OSError:
        return []


def _full_of(path: Path) -> Path:
    """Return the name of the file before this one."""
    return path.with_suffix(f".1{path.suffix}")


def _cut_after(path: Path, *, step: int) -> None:
    """Cut a file before its first line of a later step, and before half a line at its end."""
    kept = 0
    with path.open("r+b") as file:
        for line in file:
            if not line.endswith(b"\n") or _step_of(line) > step:
                break
            kept += len(line)
        file.truncate(kept)


def _step_of(line: bytes) -> int:
    """Return a line's step; one that cannot be read is of no step, and stays."""
    try:
        return msgspec.json.decode(line, type=_Line).step
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0
