"""What a child has done of a request, in memory that its parent can read even after its death.

A request is a row of steps: a `Draw` or `SampleRequest` makes one task after the other; a
`ScoreRequest` makes each job's task and then scores each of its texts. The parent lays the steps
out, and the child puts a number for each that it has done, and beside it the seconds that a text
took. So a verdict costs no system call, and the step that a lost child was busy with is the first
one that is still pending.
"""

import mmap
import os
import sys
import tempfile
from array import array
from collections.abc import Sequence
from typing import cast

# How many steps a request may have: the child holds its texts in memory, each up to 16 KiB.
MAX_STEPS = 1024
_ROW_BYTES = MAX_STEPS * 8
_BYTES = 2 * _ROW_BYTES

# Verifiers give partial credit and floating sums: from here on an answer counts as right.
SOLVED = 0.99

# What a step holds. Pending ones are negative; a score is itself, in [0, 1].
NOT_GENERATED = -2.0
NOT_SCORED = -1.0
GENERATED = 2.0
NO_ANSWER = 3.0
VERIFIER_ERROR = 4.0
TIMEOUT = 5.0


class StepBoard:
    """A row of steps and a row of seconds, shared by a parent and its child. Not thread-safe.

    `steps` and `seconds` are the rows themselves, for the child to write to.
    """

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _BYTES)
        view = memoryview(self._memory)
        self.steps: memoryview[float] = view[:_ROW_BYTES].cast("d")
        self.seconds: memoryview[float] = view[_ROW_BYTES:].cast("d")

    def write(self, steps: Sequence[float]) -> None:
        """Put the steps of a request on the board, pending."""
        self.steps[: len(steps)] = memoryview(array("d", steps))

    def read(self, count: int) -> list[float]:
        """Return the first `count` steps as they are now."""
        return cast(list[float], self.steps[:count].tolist())

    def read_seconds(self, count: int) -> list[float]:
        """Return the seconds of the first `count` steps; they mean nothing unless it was scored."""
        return cast(list[float], self.seconds[:count].tolist())

    def close(self) -> None:
        """Give up this process's view of the board."""
        self.steps.release()
        self.seconds.release()
        self._memory.close()


def count_done(steps: Sequence[float]) -> int:
    """Return how many steps were done: those before the first pending one."""
    return next((position for position, step in enumerate(steps) if step < 0), len(steps))


def open_memory() -> int:
    """Return a descriptor of new memory for a board, which the caller closes."""
    if sys.platform != "linux":
        with tempfile.TemporaryFile() as file:
            file.truncate(_BYTES)
            return os.dup(file.fileno())
    return _open_sealed_memory()


def _open_sealed_memory() -> int:
    """Return memory that nobody can cut: its parent would die of reading what is not there."""
    import fcntl

    descriptor = os.memfd_create("board", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, _BYTES)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
