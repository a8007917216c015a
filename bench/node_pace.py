"""Two trainers in a process each, which make their steps by turns."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from bench.node_sizes import Size

# A turn counts when other processes had less than this share of the machine meanwhile.
QUIET_SHARE = 0.05
_STARTS_WITHIN_S = 120.0
_TURN_WITHIN_S = 300.0


@dataclass(frozen=True)
class Turn:
    """Some steps of one trainer: seconds of each step, all parts of it, and the peak memory yet."""

    seconds: float
    parts: dict[str, float]
    peak_bytes: int
    foreign_share: float = 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether the machine did nothing else of note."""
        return self.foreign_share < QUIET_SHARE


@dataclass
class Contestant:
    """A trainer's process. `turns` holds what it did, without warm-up."""

    connection: Connection
    process: psutil.Process
    turns: list[Turn] = field(default_factory=list)

    def take_turn(self) -> Turn:
        """Let it make its steps and return how it went."""
        before = _Load.of(self.process)
        self.connection.send("go")
        if not self.connection.poll(_TURN_WITHIN_S):
            raise TimeoutError(f"{self.process} made no step in {_TURN_WITHIN_S} s")
        turn: Turn = self.connection.recv()
        share = _Load.of(self.process).foreign_since(before)
        return Turn(turn.seconds, turn.parts, turn.peak_bytes, share)


@contextmanager
def contestant(run: str, size: Size, model: Path) -> Iterator[Contestant]:
    """Start a trainer, MODULE:FUNCTION, in its own process; it is ready when this is entered."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_run, args=(run, there, size, model)
    )
    process.start()
    there.close()
    try:
        if not here.poll(_STARTS_WITHIN_S) or here.recv() != "ready":
            raise TimeoutError(f"{run} did not start")
        yield Contestant(here, psutil.Process(process.pid))
    finally:
        here.close()
        process.join(timeout=30)
        process.kill()


def _run(name: str, connection: Connection, size: Size, model: Path) -> None:
    """Run a trainer whose libraries are imported in its own process only."""
    module, function = name.split(":")
    run: Callable[[Connection, Size, Path], None] = getattr(import_module(module), function)
    run(connection, size, model)


def await_go(connection: Connection) -> bool:
    """Wait, in a trainer's process, until it may go on; False means that it shall end."""
    try:
        return bool(connection.recv() == "go")
    except EOFError:
        return False


def peak_memory() -> int:
    """Return the most bytes of memory that this process ever held."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class _Load:
    """Processor seconds so far: of everybody, and of a trainer with its verifier."""

    clock: float
    everybody: float
    own: float

    @classmethod
    def of(cls, process: psutil.Process) -> "_Load":
        times = psutil.cpu_times()
        idle = times.idle + times.iowait
        family = [process, *process.children(recursive=True)]
        own = sum(sum(member.cpu_times()[:2]) for member in family)
        return cls(time.perf_counter(), sum(times[:8]) - idle, own)

    def foreign_since(self, before: "_Load") -> float:
        """Return the share of all cores that others used meanwhile."""
        busy = (self.everybody - before.everybody) - (self.own - before.own)
        return max(0.0, busy) / ((self.clock - before.clock) * (psutil.cpu_count() or 1))
