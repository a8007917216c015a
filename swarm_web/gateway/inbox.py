"""The queue of a connection's unhandled events; it can grow while the node reads no reply.

A node that reads no reply may have a slow link, or it may send without ever reading. To tell the
two cases apart, this module reads up to MAX_AHEAD events ahead. A proper client sends far fewer
messages, however slow its link is and however long its machine sleeps. It has at most one request
pending for training, one for the judge and one for the panel, and gives up on each after 30 s at
the earliest. A socket that accepts no data is closed after `roster.STALLED_S` seconds.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from asgiref.typing import ASGIReceiveCallable

MAX_AHEAD = 32
# Reading ahead stops at this size, without a conclusion about the node.
_MAX_BYTES = 1 << 20


class Inbox:
    """The events of one connection, in order. Only one task may call `take`."""

    def __init__(self, receive: ASGIReceiveCallable) -> None:
        self._receive = receive
        self._ahead: deque[Any] = deque()
        self._reading: asyncio.Task[None] | None = None

    async def take(self) -> Any:
        """Return the next event; wait for it if necessary."""
        await self.stop()
        return self._ahead.popleft() if self._ahead else await self._receive()

    def read_ahead(self, on_overrun: Callable[[], None]) -> None:
        """Start to read events into the queue. Do not call this during `take`.

        Reading ends when `take` or `stop` is called, and after the event that ends the connection.
        It also ends when the queued events have more than _MAX_BYTES bytes. If more than MAX_AHEAD
        events are queued, reading ends and `on_overrun` is called.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_ahead(on_overrun))

    async def stop(self) -> None:
        """Stop reading ahead. Keep the events that were read."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._reading = None

    async def _read_ahead(self, on_overrun: Callable[[], None]) -> None:
        size = sum(map(size_of, self._ahead))
        while len(self._ahead) <= MAX_AHEAD:
            if size > _MAX_BYTES:
                return
            event: Any = await self._receive()
            self._ahead.append(event)
            if event["type"] != "websocket.receive":
                return
            size += size_of(event)
        on_overrun()


def size_of(event: Any) -> int:
    """Return the size of a frame in bytes, as UTF-8; 0 for an event without content."""
    content = event.get("text") or event.get("bytes") or b""
    if isinstance(content, str) and not content.isascii():
        content = content.encode()
    return len(content)
