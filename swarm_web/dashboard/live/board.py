"""The live pages of one web process: each view is read once per change, for all of its sockets.

A ring on `bus.VIEWERS` says that something changed; presence and rates change without a ring, so
views are read every `IDLE_S` seconds anyway, and at most once in `PAUSE_S`.

Anybody can ask for odd views (filtered, or later pages). A loop of their own keeps them fresh: they
are read one at a time and rest after each reading as long as it took. So they get half of the
thread's time at most, and a view that everybody looks at waits for one of them at most.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import Error
from redis.exceptions import RedisError

from swarm_web import bus
from swarm_web.dashboard.live.stream import Stream
from swarm_web.dashboard.live.views import View, ViewKey, read_view

# An eighth of what a process keeps fresh in all (board.MAX_ODD_VIEWS).
MAX_ODD_VIEWS_EACH = 8
logger = logging.getLogger(__name__)
PAUSE_S = 0.25
IDLE_S = 5.0
# What is older is told to nobody as live. Browsers give up on a socket that is silent for 20 s.
STALE_S = 15.0
# Each is read at every change. Only odd ones are counted, so that nobody can keep others from the
# pages that everybody looks at: those are few.
MAX_ODD_VIEWS = 64


# ---- shares of addresses


class TooManyViewsError(Exception):
    """As many odd views are kept fresh as may be; the message says for whom."""


class Shares:
    """Which odd views each address (`swarm_web.addresses`) watches, and in how many tabs."""

    def __init__(self) -> None:
        self._watched: dict[str, Counter[ViewKey]] = {}

    @contextmanager
    def hold(self, network: str, key: ViewKey) -> Iterator[None]:
        """Count a view for an address while the block runs. Raises TooManyViewsError."""
        if not key.is_odd:
            yield
            return
        watched = self._watched.setdefault(network, Counter())
        if key not in watched and len(watched) >= MAX_ODD_VIEWS_EACH:
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
    """The view cannot be read at this moment."""


class LiveBoard:
    """The streams of one event loop's sockets, by view, kept fresh while anybody watches.

    A stream that nobody watches is kept as it was until its room is needed: a browser that was
    cut off finds its deltas there.
    """

    def __init__(self) -> None:
        self._streams: dict[ViewKey, Stream] = {}
        self._readings: dict[ViewKey, asyncio.Task[Stream | None]] = {}
        # For the loop of the views that everybody looks at, and for that of the odd ones.
        self._rung = {is_odd: asyncio.Event() for is_odd in (False, True)}
        self._odd_turn = asyncio.Semaphore()
        self._shares = Shares()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watch(self, key: ViewKey, *, network: str) -> AsyncIterator[Stream]:
        """Give the view's stream, and keep it up to date while the block runs.

        `network` names who watches. Raises TooManyViewsError and UnreadableViewError.
        """
        with self._shares.hold(network, key):
            stream = await self.join(key)
            try:
                yield stream
            finally:
                self.leave(stream)

    @property
    def is_watched(self) -> bool:
        """Whether any browser is connected to this process."""
        return any(stream.watchers for stream in self._streams.values())

    async def join(self, key: ViewKey) -> Stream:
        """Return the view's stream, up to date, and keep it so until `leave`.

        Raises TooManyViewsError and UnreadableViewError.
        """
        stream = self._streams.get(key)
        if stream is None or not stream.watchers or stream.age() > STALE_S:
            stream = await self._catch_up(key)
            # Its room may have been given away since the reading ended.
            stream = self._streams.setdefault(key, stream)
        # No await from here on: whoever leaves meanwhile must not end the reading.
        stream.watchers += 1
        if stream.watchers == 1:
            # What changed during that reading was not heard of.
            self._rung[key.is_odd].set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return stream

    def leave(self, stream: Stream) -> None:
        """Watch a stream no more; stop reading when nobody watches any."""
        stream.watchers -= 1
        if not self.is_watched and self._task is not None:
            bus.switchboard().forget(bus.VIEWERS, self._hear)
            self._task.cancel()
            self._task = None

    async def _catch_up(self, key: ViewKey) -> Stream:
        """Read a view that nobody keeps fresh; those who come meanwhile wait for the same reading.

        Raises TooManyViewsError and UnreadableViewError.
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

    async def _read(self, key: ViewKey) -> Stream | None:
        """Put what a view shows now into its stream; None where it cannot be read."""
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
            # Another view may know better since when charts and turn are as they are.
            others = [other for other in self._streams.values() if other.view.state == view.state]
            since = min((other.since for other in others), default=view.as_of)
            self._streams[key] = Stream(view, since=since)
        return self._streams[key]

    def _make_room(self, key: ViewKey) -> None:
        """Let go of the oldest odd stream that nobody watches, if there are as many as may be."""
        odd = [other for other in {**self._streams, **self._readings} if other.is_odd]
        if not key.is_odd or len(odd) < MAX_ODD_VIEWS:
            return
        for other in odd:
            if other not in self._readings and not self._streams[other].watchers:
                del self._streams[other]
                return
        raise TooManyViewsError("too many filtered pages watched")

    async def _read_in_turn(self, key: ViewKey) -> View:
        """Read a view; an odd one alone among its kind, and none of them for as long afterwards."""
        read: Callable[[ViewKey], Awaitable[View]] = database_sync_to_async(read_view)
        if not key.is_odd:
            return await read(key)
        await self._odd_turn.acquire()
        begun = time.monotonic()
        try:
            return await read(key)
        finally:
            rest = time.monotonic() - begun
            asyncio.get_running_loop().call_later(rest, self._odd_turn.release)

    def _hear(self, _payload: str) -> None:
        for rung in self._rung.values():
            rung.set()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as loops:
            for is_odd in self._rung:
                loops.create_task(self._keep_fresh(is_odd=is_odd))

    async def _keep_fresh(self, *, is_odd: bool) -> None:
        rung = self._rung[is_odd]
        while True:
            # Each time anew: the switchboard itself may have ended, and need not answer at once.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await bus.switchboard().listen(bus.VIEWERS, self._hear)
                    await rung.wait()
            rung.clear()
            for key, stream in tuple(self._streams.items()):
                if stream.watchers and key.is_odd is is_odd:
                    await self._refresh(key, stream)
            await asyncio.sleep(PAUSE_S)

    async def _refresh(self, key: ViewKey, stream: Stream) -> None:
        """Read a view again; whatever goes wrong, the other views and the next reading go on."""
        try:
            stream.advance(await self._read_in_turn(key))
        except Exception:
            # An edge: this loop is all that keeps a process's views fresh, and must not end by one.
            # Sockets of a view that cannot be read are cut off by its age (STALE_S).
            logger.warning("could not read a live view", exc_info=True)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LiveBoard] = WeakKeyDictionary()


def live_board() -> LiveBoard:
    """Return the running event loop's live board."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = LiveBoard()
    return _by_loop[loop]
