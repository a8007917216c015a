"""Two trainers in a process each, which make their steps by turns."""

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
from bench.node_sizes import Size

# No downloads, no bars, no warnings of trl's about transformers.
QUIET = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore::FutureWarning"}
_CPU = torch.device("cpu")
_START_TIMEOUT_S = 120.0
_TURN_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Turn:
    """Some steps of one trainer: seconds of each step, all parts of it, and the peak memory yet.

    `tokens` is how many were sampled in each step, where the trainer tells. `foreign_share` is what
    other processes had of the machine meanwhile.
    """

    seconds: float
    parts: dict[str, float]
    peak_bytes: int
    tokens: float = 0.0
    foreign_share: float = 0.0


@dataclass(frozen=True)
class TrainerProcess:
    """A trainer's process; `run` is what runs in it."""

    run: str
    process: IsolatedProcess

    def await_ready(self) -> None:
        """Wait until it can begin. Raises ApartError."""
        self._receive(within_s=_START_TIMEOUT_S)

    def take_turn(self) -> Turn:
        """Let it make its steps and return how it went. Raises ApartError."""
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
    """Start a trainer, MODULE:FUNCTION, in its own process."""
    with isolated_process(run, size, model, device) as process:
        yield TrainerProcess(run, process)


def await_start(connection: Connection) -> bool:
    """Wait, in a trainer's process, until it may go on; False means that it shall end."""
    return bool(receive_message(connection) == "go")


def peak_memory(device: torch.device = _CPU) -> int:
    """Return the most bytes that this process ever held: of a GPU in tensors, else of memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class _Load:
    """Processor seconds so far: of everybody, and of a trainer with its verifier."""

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
        """Return the share of all cores that others used meanwhile."""
        busy = (self.all_processes - before.all_processes) - (self.own - before.own)
        return max(0.0, busy) / ((self.clock - before.clock) * (psutil.cpu_count() or 1))
