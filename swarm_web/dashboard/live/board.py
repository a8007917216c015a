"""The live pages of one web process: each view is read once per change, for all of its sockets.

A ring on `bus.VIEWERS` says that something changed; presence and rates change without a ring, so
views are read every `IDLE_S` seconds anyway, and at most once in `PAUSE_S`.
"""

import asyncio
import contextlib
import logging
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import DatabaseError

from swarm_web import bus
from swarm_web.dashboard.live.stream import Stream
from swarm_web.dashboard.live.views import ViewKey, read_view

logger = logging.getLogger(__name__)

PAUSE_S = 0.25
IDLE_S = 5.0
# Each is read at every change. Only odd ones are counted, so that nobody can keep others from the
# pages that everybody looks at: those are few.
MAX_ODD_VIEWS = 64


class TooManyViewsError(Exception):
    """The process keeps as many odd views fresh as it can."""


class LiveBoard:
    """The streams of one event loop's sockets, by view, kept fresh while anybody watches.

    A stream that nobody watches is kept as it was until its room is needed: a browser that was
    cut off finds its deltas there.
    """

    def __init__(self) -> None:
        self._streams: dict[ViewKey, Stream] = {}
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_watched(self) -> bool:
        """Whether any browser is connected to this process."""
        return any(stream.watchers for stream in self._streams.values())

    async def join(self, key: ViewKey) -> Stream:
        """Return the view's stream and keep it fresh until `leave`. Raises TooManyViewsError."""
        if key not in self._streams:
            self._make_room(key)
            view = await database_sync_to_async(read_view)(key)
            if key not in self._streams:
                # Others came while it was read.
                self._make_room(key)
                self._streams[key] = Stream(view)
        # No await from here on: whoever leaves meanwhile must not end the reading.
        stream = self._streams[key]
        stream.watchers += 1
        if stream.watchers == 1:
            # What changed while nobody watched, or during that first reading, was not heard of.
            self._rung.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return stream

    def leave(self, stream: Stream) -> None:
        """Watch a stream no more; stop reading when nobody watches any."""
        stream.watchers -= 1
        if not self.is_watched and self._task is not None:
            bus.switchboard().forget(bus.VIEWERS, self._hear)
            self._task.cancel()
            self._task = None

    def _make_room(self, key: ViewKey) -> None:
        """Let go of the oldest odd stream that nobody watches, if there are as many as may be."""
        odd = [other for other in self._streams if other.is_odd]
        if not key.is_odd or len(odd) < MAX_ODD_VIEWS:
            return
        for other in odd:
            if not self._streams[other].watchers:
                del self._streams[other]
                return
        raise TooManyViewsError

    def _hear(self, _payload: str) -> None:
        self._rung.set()

    async def _run(self) -> None:
        await bus.switchboard().listen(bus.VIEWERS, self._hear)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._rung.wait()
            self._rung.clear()
            for key, stream in tuple(self._streams.items()):
                if stream.watchers:
                    await self._refresh(key, stream)
            await asyncio.sleep(PAUSE_S)

    async def _refresh(self, key: ViewKey, stream: Stream) -> None:
        try:
            stream.advance(await database_sync_to_async(read_view)(key))
        except DatabaseError:
            # Browsers keep what they have and see its age; the next reading goes on.
            logger.warning("could not read a live view", exc_info=True)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LiveBoard] = WeakKeyDictionary()


def live_board() -> LiveBoard:
    """Return the running event loop's live board."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = LiveBoard()
    return _by_loop[loop]
