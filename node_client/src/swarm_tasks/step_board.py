"""The step board: a request's results, in memory that the parent can read even if the child died.

A request consists of steps, each of which makes a task or scores a text. The steps of `Draws` all
make tasks; a `ScoreRequest` makes each job's task and then scores each of its texts. The parent
writes a pending value for each step. When a step is done, the child replaces this value by the
result, and for a text also writes the seconds that scoring took. So a verdict costs no system call,
and the first step that is still pending is the one at which a child died or hung.
"""

import mmap
import os
import sys
import tempfile
from array import array
from collections.abc import Sequence
from typing import cast

# The most steps of a request: the child has its texts in memory, each up to 16 KiB.
MAX_STEPS = 1024
_ROW_BYTES = MAX_STEPS * 8
_BYTES = 2 * _ROW_BYTES

# The least score of a right answer. It is below 1 because verifiers may add floats.
SOLVED = 0.99

# The values of a step besides a score in [0, 1]. Pending ones are negative.
NOT_GENERATED = -2.0
NOT_SCORED = -1.0
GENERATED = 2.0
NO_ANSWER = 3.0
VERIFIER_ERROR = 4.0
TIMEOUT = 5.0


class StepBoard:
    """Memory that a parent shares with its verifier child: a value and a time for each step.

    A step generates one task or scores one text. `steps` holds each step's value (pending or
    result), and `seconds` the time that each text took; both have MAX_STEPS floats. The child
    writes to them directly. Not thread-safe.
    """

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _BYTES)
        view = memoryview(self._memory)
        self.steps: memoryview[float] = view[:_ROW_BYTES].cast("d")
        self.seconds: memoryview[float] = view[_ROW_BYTES:].cast("d")

    def write(self, steps: Sequence[float]) -> None:
        """Write `steps`, the pending values of a request's steps, to the start of `self.steps`."""
        self.steps[: len(steps)] = memoryview(array("d", steps))

    def read(self, count: int) -> list[float]:
        """Return the current values of the first `count` steps, pending or results."""
        return cast(list[float], self.steps[:count].tolist())

    def read_results(self, count: int) -> tuple[list[tuple[float, float]], float | None]:
        """Return the results of the steps before the first pending step, and that step's value.

        Only the first `count` steps are read. If none of them is pending, the second value is None.
        A result is a step's value and seconds. The seconds are valid only for steps that score a
        text, not for those that generate a question.
        """
        steps = self.read(count)
        done = count_done(steps)
        seconds = cast(list[float], self.seconds[:done].tolist())
        results = list(zip(steps[:done], seconds, strict=True))
        return results, steps[done] if done < count else None

    def close(self) -> None:
        """Unmap the board from this process's memory."""
        self.steps.release()
        self.seconds.release()
        self._memory.close()


def count_done(steps: Sequence[float]) -> int:
    """Return how many steps were done: those before the first pending one."""
    return next((position for position, step in enumerate(steps) if step < 0), len(steps))


def open_memory() -> int:
    """Return a file descriptor of new memory for a board; the caller closes it."""
    if sys.platform != "linux":
        with tempfile.TemporaryFile() as file:
            file.truncate(_BYTES)
            return os.dup(file.fileno())
    return _open_sealed_memory()


def _open_sealed_memory() -> int:
    """Return a file descriptor of new memory whose size cannot change.

    If a child reduced the size, SIGBUS would kill the parent when it reads past the end.
    """
    import fcntl

    descriptor = os.memfd_create("board", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, _BYTES)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
