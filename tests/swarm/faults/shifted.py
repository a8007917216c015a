"""Run a module as `python -m` does, with a wall clock that a test can move.

    python -m tests.swarm.faults.shifted FILE MODULE ARGUMENTS...

FILE contains the seconds by which the clock is ahead, and is read repeatedly. The whole project
reads the time of day with `django.utils.timezone.now` or `time.time`. Celery's own clock, which
decides when a task has expired, is not moved: beat and worker share it.
"""

import runpy
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

_LOOK_EVERY_S = 0.05


class ShiftedClock:
    """The wall clock plus the seconds in the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._time, self._now = time.time, timezone.now
        self._ahead = 0.0
        self._looked = -_LOOK_EVERY_S

    def time(self) -> float:
        """Replace `time.time`."""
        return self._time() + self._read()

    def now(self) -> datetime:
        """Replace `django.utils.timezone.now`."""
        return self._now() + timedelta(seconds=self._read())

    def _read(self) -> float:
        if time.monotonic() - self._looked >= _LOOK_EVERY_S:
            self._looked = time.monotonic()
            self._ahead = float(self._file.read_text())
        return self._ahead


def main(file: str, module: str, *arguments: str) -> None:
    """Move the clock, then run the module."""
    clock = ShiftedClock(Path(file))
    time.time = clock.time
    timezone.now = clock.now
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
