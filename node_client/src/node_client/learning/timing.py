"""Measures how long each part of a step takes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def clock_of(device: torch.device) -> Callable[[], float]:
    """Return a clock that, when read, first waits until the device has finished its queued work.

    Without waiting, a part of a step would seem to end when its work is queued, and the work would
    count as time of the next part that needs a result. A CPU queues no work.
    """
    if device.type == "cpu":
        return time.perf_counter

    def read() -> float:
        torch.accelerator.synchronize(device)
        return time.perf_counter()

    return read


class StepTimer:
    """Adds up the time of each part of a step in `seconds`; `clock` returns a time in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Add the duration of the block to the `seconds` of `part`."""
        begin = self._clock()
        try:
            yield
        finally:
            self.seconds[part] += self._clock() - begin
