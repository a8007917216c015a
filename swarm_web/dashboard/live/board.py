"""The live views of one web process. A view is read once per change, however many sockets show it.

A message on `bus.VIEWERS` reports a change. Which nodes are connected, and the rates of rollouts,
change without a message. So watched views are also read after `IDLE_S` seconds without a message.
After each reading of the watched views there is a pause of `PAUSE_S` seconds.

A filtered page of the leaderboard, or a page after the first, is an uncommon view. Anybody can
request such views, so they are read one at a time, and each reading is followed by a pause of the
same length. All views are read in one thread: uncommon views take at most half of its time, and a
common view waits for at most one of them.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from channels.db import database_sync_to_async
from django.db import Error
from redis.exceptions import RedisError

from swarm_web.core import bus
from swarm_web.core.event_loops import one_per_loop
from swarm_web.dashboard.live.stream import ViewStream
from swarm_web.dashboard.live.views import LiveView, ViewKey, read_view

# The limit for one address: an eighth of MAX_UNCOMMON_VIEWS.
MAX_UNCOMMON_VIEWS_EACH = 8
logger = logging.getLogger(__name__)
PAUSE_S = 0.25
IDLE_S = 5.0
# A view that was read longer ago is not live: its sockets are closed. Browsers close a socket that
# is silent for 20 s.
STALE_S = 15.0
# Each view is read at every change. Common views are few and not counted, so that nobody can block
# them for others.
MAX_UNCOMMON_VIEWS = 64


# ---- shares of addresses


class TooManyViewsError(Exception):
    """The limit of uncommon views, per address or in total, is reached; the message says which."""


class ViewShares:
    """Which uncommon views (`ViewKey.is_uncommon`) each address watches, and with how many sockets.

    Here an address is an IPv4 address or an IPv6 /64 network (`edge.addresses`).
    """

    def __init__(self) -> None:
        self._watched: dict[str, Counter[ViewKey]] = {}

    @contextmanager
    def hold(self, network: str, key: ViewKey) -> Iterator[None]:
        """Count an uncommon view for the address `network` while the block runs.

        A common view is not counted. Raises TooManyViewsError if the address already watches
        MAX_UNCOMMON_VIEWS_EACH other uncommon views and does not watch this one.
        """
        if not key.is_uncommon:
            yield
            return
        watched = self._watched.setdefault(network, Counter())
        if key not in watched and len(watched) >= MAX_UNCOMMON_VIEWS_EACH:
            raise TooManyViewsError("too many filtered pages watched from your address")
        watched[key] += 1
        try:
            yield
        finally:
            watched[key] -= 1
            if not watched[key]:
                del watched[key]
            if not watched:
                del self._watched[network]


# ---- the streams


class UnreadableViewError(Exception):
    """The view cannot be read at present, because of the database, Redis or a timeout."""


class LiveBoard:
    """The streams of one event loop, one for each view, kept up to date while browsers watch them.

    A stream is kept when its last watcher has left, so that a browser whose connection was cut can
    still get the deltas that it missed. At most MAX_UNCOMMON_VIEWS streams are of uncommon views
    (`ViewKey.is_uncommon`). At this limit, a new uncommon stream replaces the oldest uncommon one
    without watchers.
    """

    def __init__(self) -> None:
        self._streams: dict[ViewKey, ViewStream] = {}
        self._readings: dict[ViewKey, asyncio.Task[ViewStream | None]] = {}
        # One event wakes the loop that reads the common views, the other the uncommon views' loop.
        self._rung = {is_uncommon: asyncio.Event() for is_uncommon in (False, True)}
        self._uncommon_turn = asyncio.Semaphore()
        self._shares = ViewShares()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watch(self, key: ViewKey, *, network: str) -> AsyncIterator[ViewStream]:
        """Yield the view's stream, and keep it up to date while the block runs.

        `network` is the browser's IPv4 address or IPv6 /64 network (`edge.addresses`). Raises
        TooManyViewsError if this address watches too many views (`ViewShares.hold`), and the errors
        of `join`.
        """
        with self._shares.hold(network, key):
            stream = await self.join(key)
            try:
                yield stream
            finally:
                self.leave(stream)

    @property
    def is_watched(self) -> bool:
        """Whether any browser watches a view of this board."""
        return any(stream.watchers for stream in self._streams.values())

    async def join(self, key: ViewKey) -> ViewStream:
        """Return the view's stream, up to date, and keep it up to date until `leave`.

        Raises TooManyViewsError if the view is uncommon and the board has no room for it, and
        UnreadableViewError if the view cannot be read within STALE_S seconds.
        """
        stream = self._streams.get(key)
        if stream is None or not stream.watchers or stream.age() > STALE_S:
            stream = await self._catch_up(key)
            # It may have been removed since the reading ended.
            stream = self._streams.setdefault(key, stream)
        # No await from here on: a concurrent `leave` must not stop the reading.
        stream.watchers += 1
        if stream.watchers == 1:
            # Changes during that reading were not noticed.
            self._rung[key.is_uncommon].set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return stream

    def leave(self, stream: ViewStream) -> None:
        """Undo one `join` of a stream; stop all reading if no stream is watched any more."""
        stream.watchers -= 1
        if not self.is_watched and self._task is not None:
            bus.switchboard().forget(bus.VIEWERS, self._hear)
            self._task.cancel()
            self._task = None

    async def _catch_up(self, key: ViewKey) -> ViewStream:
        """Read a view that is not kept up to date, and return its stream.

        Concurrent callers share one reading. Raises TooManyViewsError if there is no room for the
        view, and UnreadableViewError if the reading fails or takes longer than STALE_S.
        """
        if key not in self._readings:
            if key not in self._streams:
                self._make_room(key)
            self._readings[key] = asyncio.create_task(self._read(key))
        stream = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STALE_S):
                stream = await asyncio.shield(self._readings[key])
        if stream is None:
            raise UnreadableViewError
        return stream

    async def _read(self, key: ViewKey) -> ViewStream | None:
        """Read a view into its stream, and return the stream; None if the view cannot be read."""
        try:
            view = await self._read_in_turn(key)
        except (Error, RedisError):
            logger.warning("could not read a live view", exc_info=True)
            return None
        finally:
            del self._readings[key]
        if key in self._streams:
            self._streams[key].advance(view)
        else:
            self._streams[key] = ViewStream(view)
        return self._streams[key]

    def _make_room(self, key: ViewKey) -> None:
        """Make room for the view `key`, if it is uncommon and there are MAX_UNCOMMON_VIEWS already.

        Removes the oldest uncommon stream without watchers. Raises TooManyViewsError if every
        uncommon view is watched or being read.
        """
        uncommon = [other for other in {**self._streams, **self._readings} if other.is_uncommon]
        if not key.is_uncommon or len(uncommon) < MAX_UNCOMMON_VIEWS:
            return
        for other in uncommon:
            if other not in self._readings and not self._streams[other].watchers:
                del self._streams[other]
                return
        raise TooManyViewsError("too many filtered pages watched")

    async def _read_in_turn(self, key: ViewKey) -> LiveView:
        """Read a view; wait for a turn if it is uncommon.

        Uncommon views are read one at a time, with a pause after each reading that is as long as
        the reading.
        """
        read: Callable[[ViewKey], Awaitable[LiveView]] = database_sync_to_async(read_view)
        if not key.is_uncommon:
            return await read(key)
        await self._uncommon_turn.acquire()
        begun = time.monotonic()
        try:
            return await read(key)
        finally:
            rest = time.monotonic() - begun
            asyncio.get_running_loop().call_later(rest, self._uncommon_turn.release)

    def _hear(self, _payload: str) -> None:
        for rung in self._rung.values():
            rung.set()

    async def _run(self) -> None:
        own = asyncio.current_task()
        async with asyncio.TaskGroup() as loops:
            for is_uncommon in self._rung:
                loops.create_task(self._keep_fresh(own, is_uncommon=is_uncommon))

    async def _keep_fresh(self, own: asyncio.Task[None] | None, *, is_uncommon: bool) -> None:
        rung = self._rung[is_uncommon]
        # A reading can lose the cancellation (`core.event_loops`), so look whether it came.
        while self._task is own:
            # Subscribe again each time: the switchboard may have ended, and may be slow.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await bus.switchboard().listen(bus.VIEWERS, self._hear)
                    await rung.wait()
            rung.clear()
            for key, stream in tuple(self._streams.items()):
                if stream.watchers and key.is_uncommon is is_uncommon:
                    await self._refresh(key, stream)
            await asyncio.sleep(PAUSE_S)

    async def _refresh(self, key: ViewKey, stream: ViewStream) -> None:
        """Read a view again; log errors, which must not stop the loop that reads the views."""
        try:
            stream.advance(await self._read_in_turn(key))
        except Exception:
            # An edge: only this loop keeps the process's views up to date, so it must not end.
            # Sockets of an unreadable view are closed because of its age (STALE_S).
            logger.warning("could not read a live view", exc_info=True)


@one_per_loop
def live_board() -> LiveBoard:
    """Return the running event loop's live board."""
    return LiveBoard()
