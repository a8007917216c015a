"""Values of the database that many messages need, read at most every few seconds."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from channels.db import database_sync_to_async

Value = TypeVar("Value")


class Cached(Generic[Value]):
    """A value of one event loop, loaded by `load` in a thread and kept for `max_age_s` seconds.

    Callers who come while it loads wait for the same load.
    """

    def __init__(self, load: Callable[[], Value], *, max_age_s: float) -> None:
        self._load = database_sync_to_async(load)
        self._max_age_s = max_age_s
        self._lock = asyncio.Lock()
        self._drops = 0
        self._fresh: tuple[float, Value] | None = None

    async def get(self) -> Value:
        """Return the value, loaded again if it is too old or was dropped."""
        # Without the lock, which costs more than the rest where the value is fresh.
        fresh = self._fresh
        if fresh is not None and asyncio.get_running_loop().time() - fresh[0] < self._max_age_s:
            return fresh[1]
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._fresh is not None and now - self._fresh[0] < self._max_age_s:
                return self._fresh[1]
            drops = self._drops
            value: Value = await self._load()
            # What was dropped while it loaded may be old already.
            self._fresh = (now, value) if drops == self._drops else None
            return value

    def drop(self) -> None:
        """Forget the value."""
        self._drops += 1
        self._fresh = None
