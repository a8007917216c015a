"""One view's deltas in a short ring, from which every socket reads at its own pace.

A delta is encoded once, and compressed once for browsers that can unpack it: all sockets of the
view send the same bytes. A socket that falls behind the ring, slow or cut off, gets the snapshot.
"""

import asyncio
import gzip
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import uuid4

import msgspec

from swarm_web.dashboard.live.views import Message, View, describe_delta, describe_snapshot

# Several minutes of a quiet site.
RING_DELTAS = 64
# What a ring may hold in all, as text: a busy page of rows changes whole with each round.
RING_CHARS = 2_000_000
_GZIP_LEVEL = 5


@dataclass(frozen=True)
class Packet:
    """A numbered message, encoded."""

    seq: int
    text: str

    @cached_property
    def packed(self) -> bytes:
        """The text, gzipped."""
        return gzip.compress(self.text.encode(), _GZIP_LEVEL)


class Stream:
    """The present state of a view, and how it came about lately."""

    def __init__(self, view: View, *, since: datetime | None = None) -> None:
        self.epoch = uuid4().hex[:12]
        self.view = view
        # Since when its charts and turn are as they are, as far as is known.
        self.since = since or view.as_of
        self.seq = 0
        self.watchers = 0
        self._read_at = time.monotonic()
        self._ring: deque[Packet] = deque()
        self._news = asyncio.Event()
        self._snapshot: Packet | None = None

    def age(self) -> float:
        """Return how many seconds ago the view was read."""
        return time.monotonic() - self._read_at

    def advance(self, view: View) -> None:
        """Number what changed since the last view, keep it, and wake the sockets.

        Two readings may overlap: one that began before the last one is passed over.
        """
        if view.as_of < self.view.as_of:
            return
        self._read_at = time.monotonic()
        if view.state != self.view.state:
            self.since = view.as_of
        self.seq += 1
        self._ring.append(self._encode(describe_delta(self.view, view)))
        while len(self._ring) > RING_DELTAS or self._held() > RING_CHARS:
            self._ring.popleft()
        self.view, self._snapshot = view, None
        news, self._news = self._news, asyncio.Event()
        news.set()

    def snapshot(self) -> Packet:
        """Return the present state, encoded once."""
        if self._snapshot is None:
            self._snapshot = self._encode(describe_snapshot(self.view, since=self.since))
        return self._snapshot

    def resume(self, after: str) -> int | None:
        """Return the number after which a returning browser reads on, `<epoch>:<seq>`.

        None where it asks for another stream's deltas, or ones that are no longer kept.
        """
        epoch, _, seq = after.partition(":")
        if epoch != self.epoch:
            return None
        first = self._ring[0].seq if self._ring else self.seq + 1
        # Compared as texts: what a browser sends need not be a number that Python reads.
        return next((kept for kept in range(first - 1, self.seq + 1) if str(kept) == seq), None)

    async def wait_after(self, seq: int) -> Packet:
        """Return the delta after `seq`, when there is one; a snapshot if it is no longer kept."""
        while self.seq <= seq:
            await self._news.wait()
        if not self._ring or self._ring[0].seq > seq + 1:
            return self.snapshot()
        return self._ring[seq + 1 - self._ring[0].seq]

    def greet_again(self) -> Packet:
        """Return what tells a returning browser that its deltas follow."""
        message = {"type": "resumed", "as_of": self.view.as_of.isoformat()}
        return Packet(self.seq, msgspec.json.encode(message).decode())

    def _held(self) -> int:
        return sum(len(packet.text) for packet in self._ring)

    def _encode(self, message: Message) -> Packet:
        numbered = {**message, "epoch": self.epoch, "seq": self.seq}
        return Packet(self.seq, msgspec.json.encode(numbered).decode())
