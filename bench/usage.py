"""Processor time and memory of a running site's processes, by the part that each one is."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import psutil

# What the command line of a part contains.
_PARTS = {
    "web": "uvicorn",
    "worker": " worker ",
    "beat": " beat ",
    "postgres": "postgres",
    "valkey": "valkey",
}


@dataclass(frozen=True)
class Usage:
    """Seconds of processor time that each part has taken since its start."""

    seconds: dict[str, float]

    @classmethod
    def of(cls, launcher: int) -> Self:
        """Read it for all processes below a launcher."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for part, process in _read_parts(launcher):
            # Of a process that has ended, the time is its parent's.
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                seconds[part] += times.user + times.system
                seconds[part] += times.children_user + times.children_system
        return cls(dict(seconds))

    def since(self, before: Self) -> dict[str, float]:
        """Return the seconds of each part between two readings."""
        return {part: total - before.seconds.get(part, 0.0) for part, total in self.seconds.items()}


def find_processes(launcher: int, part: str) -> list[psutil.Process]:
    """Return the processes of a part."""
    return [process for found, process in _read_parts(launcher) if found == part]


def _read_parts(launcher: int) -> Iterator[tuple[str, psutil.Process]]:
    """Yield all processes below a launcher, each with its part."""
    for process in psutil.Process(launcher).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            yield _find_part(process), process


def _find_part(process: psutil.Process) -> str:
    """Return which part of the site a process belongs to: its own or its parent's."""
    for each in [process, *process.parents()]:
        line = f" {' '.join(each.cmdline())} "
        for part, word in _PARTS.items():
            if word in line:
                return part
    return "launcher"


def await_started(launcher: int, *, within_s: float = 120.0) -> None:
    """Wait until all that a site does once at its start is done, such as building the client."""
    deadline = time.monotonic() + within_s
    while any(part == "launcher" for part, _ in _read_parts(launcher)):
        if time.monotonic() > deadline:
            raise TimeoutError("the site still starts")
        time.sleep(0.2)


def pin_to_core(core: int, launcher: int) -> None:
    """Let a site's processes, and those that they start, run on one core only."""
    for process in [psutil.Process(launcher), *psutil.Process(launcher).children(recursive=True)]:
        process.cpu_affinity([core])
