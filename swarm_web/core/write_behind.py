"""Writes that may wait a moment: collected in memory, and written together soon after."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import redis.exceptions
from django import db

logger = logging.getLogger(__name__)

# What a store raises while it is away; the next attempt may succeed. A Postgres that may only be
# read, such as a standby that takes over, raises an InternalError.
STORE_ERRORS = (
    *(db.OperationalError, db.InterfaceError, db.InternalError),
    redis.exceptions.RedisError,
)
_RETRY_S = 2.0


class WriteBehind:
    """Calls `write` soon after `wake`, once for everything that was collected until then.

    `write` takes what its owner has collected, and puts it back when it fails; it is then called
    again after a pause. One for an event loop. `close` writes what is left, so a clean stop loses
    nothing; a process that is killed loses what it collected in the last `pause_s` seconds.
    """

    def __init__(self, write: Callable[[], Awaitable[None]], *, pause_s: float, name: str) -> None:
        self._write = write
        self._pause_s = pause_s
        self._name = name
        self._due: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def wake(self) -> None:
        """Have what was collected written soon."""
        if self._due is None:
            self._due = asyncio.create_task(self._write_later())

    async def flush(self) -> None:
        """Write now. Raises what `write` raises."""
        async with self._writing:
            await self._write()

    async def close(self) -> None:
        """Stop, and write what is left; log it where that fails."""
        if self._due is not None:
            self._due.cancel()
            await asyncio.wait([self._due])
            self._due = None
        try:
            await self.flush()
        except Exception:
            # An edge: whatever is wrong here, what others collected is still written.
            logger.exception("%s: what was collected last is lost", self._name)

    async def _write_later(self) -> None:
        pause_s = self._pause_s
        while True:
            await asyncio.sleep(pause_s)
            # Anything that is collected from here on needs another call.
            self._due = None
            try:
                await self.flush()
                return
            except STORE_ERRORS:
                logger.warning("%s: could not write, retrying", self._name, exc_info=True)
            if self._due is not None:
                return  # woken meanwhile: that call writes everything
            self._due = asyncio.current_task()
            pause_s = _RETRY_S
