"""Doorbells on their way to one socket."""

import asyncio
from collections import deque


class Mailbox:
    """Hold the last `size` doorbells for a socket that is slow to take them.

    What is pushed out is the oldest, because the newest says how things stand now. Nobody waits
    for a slow socket, and it costs a bounded amount of memory.
    """

    def __init__(self, size: int = 16) -> None:
        self._waiting: deque[str] = deque(maxlen=size)
        self._filled = asyncio.Event()
        self._dropped = 0

    def put(self, payload: str) -> None:
        """Add a doorbell."""
        self._dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append(payload)
        self._filled.set()

    async def take(self) -> str:
        """Wait for the oldest doorbell and return it; for one taker at a time."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        return self._waiting.popleft()

    def collect_dropped(self) -> int:
        """Return how many were pushed out since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped
