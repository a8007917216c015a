"""A cache of database values that many messages need; each value expires after some seconds."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from channels.db import database_sync_to_async

from swarm_web.core.write_behind import STORE_ERRORS

Value = TypeVar("Value")

# The longest wait for a reload if a value is known: an unreachable database may take many seconds
# to fail.
RELOAD_TIMEOUT_S = 0.5


class _CachedValue(NamedTuple, Generic[Value]):
    value: Value
    fresh_until: float


class Cached(Generic[Value]):
    """A value that `load` reads in a thread and that one event loop caches for `max_age_s` seconds.

    Concurrent callers share one load. While the database is unavailable, callers get the last
    value, unless `drop` has discarded it.
    """

    def __init__(self, load: Callable[[], Value], *, max_age_s: float) -> None:
        self._load = database_sync_to_async(load)
        self._max_age_s = max_age_s
        self._cached: _CachedValue[Value] | None = None
        self._loading: asyncio.Task[Value] | None = None

    async def get(self) -> Value:
        """Return the value. Load it first if there is none or it is too old.

        If there is an old value, this waits for the load at most RELOAD_TIMEOUT_S. If the load
        takes longer or raises one of STORE_ERRORS, the old value is returned; other errors are
        raised.

        If there is no value, because none was loaded yet or `drop` discarded it, this waits until
        the load ends. Any error of the load is raised.
        """
        cached = self._cached
        if cached is not None and monotonic() < cached.fresh_until:
            return cached.value
        loading = self._loading
        if loading is None:
            loading = self._loading = asyncio.create_task(self._reload())
            # Retrieves the exception, since no caller may be waiting for it.
            loading.add_done_callback(lambda done: done.cancelled() or done.exception())
        if cached is None:
            return await asyncio.shield(loading)
        await asyncio.wait([loading], timeout=RELOAD_TIMEOUT_S)
        if loading.done() and not isinstance(loading.exception(), STORE_ERRORS):
            return loading.result()
        return cached.value

    def drop(self) -> None:
        """Discard the value, and do not cache the result of a load in progress.

        Callers that already wait for this load get its result, which may be outdated.
        """
        self._cached = self._loading = None

    async def _reload(self) -> Value:
        this, started = asyncio.current_task(), monotonic()
        try:
            value: Value = await self._load()
        except STORE_ERRORS:
            if self._loading is this and self._cached is not None:
                # Retry after a while, not with each message.
                self._cached = self._cached._replace(fresh_until=monotonic() + self._max_age_s)
            raise
        else:
            if self._loading is this:
                self._cached = _CachedValue(value, started + self._max_age_s)
            return value
        finally:
            if self._loading is this:
                self._loading = None
