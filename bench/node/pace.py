"""Trainers that run in separate processes and take turns to make training steps."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import torch

from bench.isolated_process import (
    IsolatedProcess,
    IsolatedProcessError,
    isolated_process,
    receive_message,
)
from bench.node.sizes import Size

# No downloads, no progress bars, and no warnings from trl about transformers.
QUIET = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore::FutureWarning"}
_CPU = torch.device("cpu")
_START_TIMEOUT_S = 120.0
_TURN_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Turn:
    """The steps of one turn: mean seconds of a step and of its parts, and the peak memory.

    `peak_bytes` covers the earlier turns too.
    `tokens` is the mean number of tokens sampled in a step, 0 if the trainer does not report it.
    `foreign_share` is the share of all cores' time that other processes used during the turn.
    """

    seconds: float
    parts: dict[str, float]
    peak_bytes: int
    tokens: float = 0.0
    foreign_share: float = 0.0


@dataclass(frozen=True)
class TrainerProcess:
    """A trainer's process; `run` is the function that it runs, as MODULE:FUNCTION."""

    run: str
    process: IsolatedProcess

    def await_ready(self) -> None:
        """Wait until the trainer is loaded. Raises IsolatedProcessError if loading fails."""
        self._receive(within_s=_START_TIMEOUT_S)

    def take_turn(self) -> Turn:
        """Let the trainer make the steps of one turn, and return their figures.

        Raises IsolatedProcessError if the trainer fails.
        """
        before = _Load.of(self.process)
        self.process.send("go")
        turn: Turn = self._receive(within_s=_TURN_TIMEOUT_S)
        return replace(turn, foreign_share=_Load.of(self.process).foreign_since(before))

    def _receive(self, *, within_s: float) -> Any:
        try:
            return self.process.receive(within_s=within_s)
        except IsolatedProcessError as problem:
            raise IsolatedProcessError(f"{self.run}: {problem}") from problem


@contextmanager
def trainer_process(run: str, size: Size, model: Path, device: str) -> Iterator[TrainerProcess]:
    """Run the trainer `run`, given as MODULE:FUNCTION, in a process until the block ends."""
    with isolated_process(run, size, model, device) as process:
        yield TrainerProcess(run, process)


def await_start(connection: Connection) -> bool:
    """In a trainer's process: wait for the next turn. Return False if the process must end."""
    return bool(receive_message(connection) == "go")


def peak_memory(device: torch.device = _CPU) -> int:
    """Return this process's peak memory in bytes: torch tensors on a GPU, resident set on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class _Load:
    """CPU seconds used so far by `all_processes`, and by a trainer with its children (`own`).

    `clock` is the time of the reading, in seconds.
    """

    clock: float
    all_processes: float
    own: float

    @classmethod
    def of(cls, isolated_process: IsolatedProcess) -> "_Load":
        times = psutil.cpu_times()
        idle = times.idle + times.iowait
        process = psutil.Process(isolated_process.pid)
        family = [process, *process.children(recursive=True)]
        own = sum(sum(member.cpu_times()[:2]) for member in family)
        return cls(time.perf_counter(), sum(times[:8]) - idle, own)

    def foreign_since(self, before: "_Load") -> float:
        """Return the share of all cores' time that other processes have used since `before`."""
        busy = (self.all_processes - before.all_processes) - (self.own - before.own)
        return max(0.0, busy) / ((self.clock - before.clock) * (psutil.cpu_count() or 1))
