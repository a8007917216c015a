"""What a node sent and nobody has handled yet; it is read on where the node takes no reply.

A server that reads nothing while a reply waits cannot tell a slow link from a node that never
reads. So a little is read on. A client waits for the reply to each request: it has one on its way
for training, one for the judge and one for the panel, and gives up on each after 30 s at the
earliest. A socket that takes nothing is closed after `roster.STALLED_S`. So MOST_AHEAD is several
times what a client sends until then, however slow its link is or long its machine sleeps.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from asgiref.typing import ASGIReceiveCallable

MOST_AHEAD = 32
# No more is kept: then nothing is read on, and nothing is known of the node.
_MOST_BYTES = 1 << 20


class Inbox:
    """The events of one connection, in their order. Only one task may take them."""

    def __init__(self, receive: ASGIReceiveCallable) -> None:
        self._receive = receive
        self._ahead: deque[Any] = deque()
        self._reading: asyncio.Task[None] | None = None

    async def take(self) -> Any:
        """Return the next event as soon as there is one."""
        await self.stop()
        return self._ahead.popleft() if self._ahead else await self._receive()

    def read_on(self, overrun: Callable[[], None]) -> None:
        """Read on until `take` is called, and call `overrun` if there are more than MOST_AHEAD.

        Not while an event is being taken.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_on(overrun))

    async def stop(self) -> None:
        """Read on no more. What was read is kept."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._reading = None

    async def _read_on(self, overrun: Callable[[], None]) -> None:
        size = sum(map(_size, self._ahead))
        while len(self._ahead) <= MOST_AHEAD:
            if size > _MOST_BYTES:
                return
            event: Any = await self._receive()
            self._ahead.append(event)
            if event["type"] != "websocket.receive":
                return
            size += _size(event)
        overrun()


def _size(event: Any) -> int:
    return len(event.get("text") or event.get("bytes") or b"")
