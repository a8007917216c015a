"""Adds up how long each part of a step takes."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds by part; `clock` returns seconds from any fixed moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Add the time that the block takes to the part."""
        begin = self._clock()
        try:
            yield
        finally:
            self.seconds[part] += self._clock() - begin
