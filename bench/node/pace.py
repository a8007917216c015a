"""Trainers in separate processes that make their steps by turns."""

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
    """The steps of one turn: mean seconds of a step and of its parts, and the peak memory so far.

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
    """A trainer's process; `run` names its function, MODULE:FUNCTION."""

    run: str
    process: IsolatedProcess

    def await_ready(self) -> None:
        """Wait until the trainer is loaded. Raises IsolatedProcessError."""
        self._receive(within_s=_START_TIMEOUT_S)

    def take_turn(self) -> Turn:
        """Let the trainer make the steps of a turn. Raises IsolatedProcessError."""
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
    """Run the trainer MODULE:FUNCTION in its own process until the block ends."""
    with isolated_process(run, size, model, device) as process:
        yield TrainerProcess(run, process)


def await_start(connection: Connection) -> bool:
    """In a trainer's process: wait for the start of the next turn. False means that it must end."""
    return bool(receive_message(connection) == "go")


def peak_memory(device: torch.device = _CPU) -> int:
    """Return the peak memory of this process in bytes: of tensors on a GPU, resident on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class _Load:
    """CPU seconds so far, of all processes and of a trainer (`own`) with its children.

    `clock` is the time of the reading.
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
