"""Deferred writes: data is collected in memory and written together shortly after."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import redis.exceptions
from django import db

logger = logging.getLogger(__name__)

# Errors of a store that is unavailable; the next attempt may succeed. A read-only Postgres, such as
# a standby during a failover, raises an InternalError.
STORE_ERRORS = (
    *(db.OperationalError, db.InterfaceError, db.InternalError),
    redis.exceptions.RedisError,
)
_RETRY_S = 2.0


class WriteBehind:
    """Calls `write` `pause_s` seconds after `wake`; calls of `wake` in between change nothing.

    The caller collects the data. `write` must remove the data that it writes from the collected
    data, and put it back if the write fails. If `write` raises one of STORE_ERRORS, it is called
    again after a pause. Use one WriteBehind per event loop. `close` writes the remaining data,
    which is lost if that write fails or if the process is killed.
    """

    def __init__(self, write: Callable[[], Awaitable[None]], *, pause_s: float, name: str) -> None:
        self._write = write
        self._pause_s = pause_s
        self._name = name
        self._due: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def wake(self) -> None:
        """Schedule a write of the collected data."""
        if self._due is None:
            self._due = asyncio.create_task(self._write_later())

    async def flush(self) -> None:
        """Write now. Raises what `write` raises."""
        async with self._writing:
            await self._write()

    async def close(self) -> None:
        """Stop, and write the remaining data; log a failure."""
        if self._due is not None:
            self._due.cancel()
            await asyncio.wait([self._due])
            self._due = None
        try:
            await self.flush()
        except Exception:
            # An edge: a failure here must not prevent other writers from writing.
            logger.exception("%s: could not write the remaining data, it is lost", self._name)

    async def _write_later(self) -> None:
        pause_s = self._pause_s
        while True:
            await asyncio.sleep(pause_s)
            # Data collected from here on needs another call.
            self._due = None
            try:
                await self.flush()
                return
            except STORE_ERRORS:
                logger.warning("%s: could not write, retrying", self._name, exc_info=True)
            if self._due is not None:
                return  # `wake` was called; that task writes everything
            self._due = asyncio.current_task()
            pause_s = _RETRY_S
