"""The latest deltas of one view in a short ring buffer, which every socket reads at its own pace.

A delta is encoded once, and compressed once for browsers that accept gzip: all sockets of the view
send the same bytes. A socket whose next delta is no longer in the ring receives a snapshot.
"""

import asyncio
import gzip
import time
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

import msgspec

from swarm_web.dashboard.live.views import LiveView, Message, describe_delta, describe_snapshot

# Maximum number of deltas in a ring; on a quiet site they cover several minutes.
RING_DELTAS = 64
# Maximum characters in a ring: with each round, all rows of a busy page change.
RING_CHARS = 2_000_000
_GZIP_LEVEL = 5


@dataclass(frozen=True)
class Packet:
    """A message as JSON; `seq` is the number of the latest delta when the message was made."""

    seq: int
    text: str

    @cached_property
    def packed(self) -> bytes:
        """The text in UTF-8, gzipped."""
        return gzip.compress(self.text.encode(), _GZIP_LEVEL)


class ViewStream:
    """The current state of a view, and its latest deltas.

    `epoch` identifies the stream. `seq` is the number of its last delta, 0 before the first.
    `watchers` is the number of sockets that read the stream; the LiveBoard counts them.
    """

    def __init__(self, view: LiveView) -> None:
        self.epoch = uuid4().hex[:12]
        self.view = view
        self.seq = 0
        self.watchers = 0
        self._read_at = time.monotonic()
        self._ring: deque[Packet] = deque()
        self._news = asyncio.Event()
        self._snapshot: Packet | None = None

    def age(self) -> float:
        """Return the number of seconds since the view was read."""
        return time.monotonic() - self._read_at

    def advance(self, view: LiveView) -> None:
        """Make `view` the current one, store its changes as a delta, and wake the sockets.

        Readings may overlap: `view` is ignored if its reading began before the reading of the
        current view.
        """
        if view.as_of < self.view.as_of:
            return
        self._read_at = time.monotonic()
        self.seq += 1
        self._ring.append(self._encode(describe_delta(self.view, view)))
        while len(self._ring) > RING_DELTAS or self._held() > RING_CHARS:
            self._ring.popleft()
        self.view, self._snapshot = view, None
        news, self._news = self._news, asyncio.Event()
        news.set()

    def snapshot(self) -> Packet:
        """Return the current state as a message."""
        if self._snapshot is None:
            self._snapshot = self._encode(describe_snapshot(self.view))
        return self._snapshot

    def resume(self, after: str) -> int | None:
        """Return the `seq` in `after` if the browser can continue from there, otherwise None.

        `after` is `<epoch>:<seq>` of the last message that a reconnected browser received. The
        browser cannot continue, and needs a snapshot, if that message is not of this stream or if a
        later delta is no longer kept.
        """
        epoch, _, seq = after.partition(":")
        if epoch != self.epoch:
            return None
        first = self._ring[0].seq if self._ring else self.seq + 1
        # Compared as text: what a browser sends may not be a valid number.
        return next((kept for kept in range(first - 1, self.seq + 1) if str(kept) == seq), None)

    async def wait_after(self, seq: int) -> Packet:
        """Wait until there is a delta after `seq`, and return the first one.

        If this delta is no longer kept, return a snapshot instead.
        """
        while self.seq <= seq:
            await self._news.wait()
        if not self._ring or self._ring[0].seq > seq + 1:
            return self.snapshot()
        return self._ring[seq + 1 - self._ring[0].seq]

    def greet_again(self) -> Packet:
        """Return `resumed`, the first message to a reconnected browser that needs no snapshot."""
        as_of, state = self.view.as_of.isoformat(), self.view.state
        message = {"type": "resumed", "as_of": as_of, "state": state}
        return Packet(self.seq, msgspec.json.encode(message).decode())

    def _held(self) -> int:
        """Return the number of characters in the kept deltas."""
        return sum(len(packet.text) for packet in self._ring)

    def _encode(self, message: Message) -> Packet:
        numbered = {**message, "epoch": self.epoch, "seq": self.seq}
        return Packet(self.seq, msgspec.json.encode(numbered).decode())
