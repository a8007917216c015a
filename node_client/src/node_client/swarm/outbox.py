"""What is owed to the coordinator, kept until it was acknowledged."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Generic, TypeVar

from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from swarm_protocol.errors import RETURN_CODES, ErrorCode, RefusedError

# Refusals that say nothing about what was sent: it is sent again after a pause.
PASSING = frozenset(
    {ErrorCode.RATE_LIMITED, ErrorCode.SERVER_BUSY, ErrorCode.SERVER_INTERNAL, *RETURN_CODES}
)
RETRY_S = 0.1
PAUSE_S = 5.0

log = logging.getLogger(__name__)
Item = TypeVar("Item")


class Outbox(Generic[Item]):
    """A bounded queue that is sent whenever there is a connection, oldest first.

    An item leaves after `send` returned, so a lost connection repeats it: what is sent must be
    harmless when it comes twice. Over `most`, the oldest items are dropped and counted. `group`
    keeps items with different values out of one batch. `rest_s` is the least time between batches.
    `left` is told which items are owed no more: sent, refused for good, or dropped.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        send: Callable[[Sequence[Item]], Awaitable[object]],
        refused: Callable[[RefusedError], None],
        most: int,
        batch: int,
        group: Callable[[Item], object] = lambda item: None,
        rest_s: float = 0,
        left: Callable[[Sequence[Item]], None] = lambda items: None,
    ) -> None:
        self._client = client
        self._send = send
        self._refused = refused
        self._most = most
        self._batch = batch
        self._group = group
        self._rest_s = rest_s
        self._left = left
        self._items: deque[Item] = deque()
        self._filled = asyncio.Event()
        self.empty = asyncio.Event()
        self.empty.set()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, items: Iterable[Item]) -> None:
        """Owe these too. Must be called on the event loop."""
        self._items.extend(items)
        pushed_out = [self._items.popleft() for _ in range(len(self._items) - self._most)]
        if pushed_out:
            self.dropped += len(pushed_out)
            self._left(pushed_out)
        self._mark()

    def clear(self) -> None:
        """Owe nothing of what waits here any more. Must be called on the event loop."""
        given_up = list(self._items)
        self._items.clear()
        self._left(given_up)
        self._mark()

    async def run(self) -> None:
        """Send what is owed until cancelled."""
        while True:
            await self._filled.wait()
            await self._client.wait_until_connected()
            if not self._items:  # given up while there was no connection
                continue
            batch = self._next_batch()
            try:
                await self._send(batch)
            except UnansweredError as problem:
                log.debug("sending again later: %s", problem)
                # The connection may be lost without having noticed yet: let it.
                await asyncio.sleep(RETRY_S)
                continue
            except RefusedError as refusal:
                self._refused(refusal)
                if refusal.code in PASSING:
                    await asyncio.sleep(refusal.retry_after or PAUSE_S)
                    continue
            self._remove(batch)
            self._left(batch)
            await asyncio.sleep(self._rest_s)

    def _next_batch(self) -> list[Item]:
        group = self._group(self._items[0])
        same = takewhile(lambda item: self._group(item) == group, self._items)
        return list(islice(same, self._batch))

    def _remove(self, batch: list[Item]) -> None:
        """Remove what was sent; some of it may have been pushed out meanwhile."""
        for item in batch:
            if self._items and self._items[0] is item:
                self._items.popleft()
        self._mark()

    def _mark(self) -> None:
        filled, empty = (self._filled, self.empty) if self._items else (self.empty, self._filled)
        filled.set()
        empty.clear()
