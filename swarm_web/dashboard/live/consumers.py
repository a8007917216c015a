"""The browser's socket at /ws/live/: a snapshot, then sequence-numbered deltas."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from swarm_web.dashboard.live.board import Message, live_board
from swarm_web.dashboard.reports.board import read_window
from swarm_web.errors import RequestError

# A browser that is this many messages behind is cut off; it comes back for a fresh snapshot.
MAX_BEHIND = 16
CLOSE_TOO_SLOW = 4408
CLOSE_BAD_WINDOW = 4400


class LiveConsumer(AsyncWebsocketConsumer):
    """Joins the live board of its process and writes what it is sent, at its own pace."""

    async def connect(self) -> None:
        """Accept and send the snapshot of the window in the query string."""
        await self.accept()
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        self._outbox: asyncio.Queue[Message] = asyncio.Queue(MAX_BEHIND)
        try:
            self._window = read_window(query.get("window", [None])[0])
        except RequestError:
            await self.close(CLOSE_BAD_WINDOW)
            return
        self._writer = asyncio.create_task(self._write())
        await live_board().join(self._window, self._send_soon)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Ignore what browsers say: this socket only tells."""

    async def disconnect(self, code: int) -> None:
        """Leave the board."""
        if hasattr(self, "_writer"):
            self._writer.cancel()
            live_board().leave(self._window, self._send_soon)

    def _send_soon(self, message: Message) -> None:
        """Queue a message without waiting for a slow browser."""
        try:
            self._outbox.put_nowait(message)
        except asyncio.QueueFull:
            self._writer.cancel()
            self._closing = asyncio.create_task(self.close(CLOSE_TOO_SLOW))

    async def _write(self) -> None:
        while True:
            message: dict[str, Any] = await self._outbox.get()
            await self.send(json.dumps(message))
