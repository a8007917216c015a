"""A queue of items for the coordinator, each kept until the coordinator has acknowledged it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Generic, TypeVar

from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from swarm_protocol.errors import RETURN_CODES, ErrorCode, RefusedError

# Temporary refusals: the same message is sent again after a pause.
TEMPORARY_CODES = frozenset(
    {ErrorCode.RATE_LIMITED, ErrorCode.SERVER_BUSY, ErrorCode.SERVER_INTERNAL, *RETURN_CODES}
)
RETRY_S = 0.1
PAUSE_S = 5.0

log = logging.getLogger(__name__)
Item = TypeVar("Item")


class Outbox(Generic[Item]):
    """A bounded queue whose items are sent in batches, oldest first, while there is a connection.

    An item stays in the queue until `send` has returned or was refused permanently. After a lost
    connection it may be sent again, so sending an item twice must be harmless. If there are more
    than `capacity` items besides the batch that is being sent, the oldest of them are dropped, and
    `dropped` counts them. A batch has at most `batch` items, all with the same value of
    `batch_key(item)`. `min_interval_s` is the pause after each batch. `on_refused` is called with
    each refusal, and `on_removed`, once for each item, with the items that were sent, permanently
    refused, or dropped. The event `empty` is set while the queue has no items.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        send: Callable[[Sequence[Item]], Awaitable[object]],
        on_refused: Callable[[RefusedError], None],
        capacity: int,
        batch: int,
        batch_key: Callable[[Item], object] = lambda item: None,
        min_interval_s: float = 0,
        on_removed: Callable[[Sequence[Item]], None] = lambda items: None,
    ) -> None:
        self._client = client
        self._send = send
        self._on_refused = on_refused
        self._capacity = capacity
        self._batch = batch
        self._batch_key = batch_key
        self._min_interval_s = min_interval_s
        self._on_removed = on_removed
        self._items: deque[Item] = deque()
        # How many of the first items are being sent.
        self._in_flight = 0
        self._filled = asyncio.Event()
        self.empty = asyncio.Event()
        self.empty.set()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, items: Iterable[Item]) -> None:
        """Add items; drop the oldest if there are too many. Must be called on the event loop."""
        self._items.extend(items)
        self._drop_excess()
        self._update_events()

    def clear(self) -> None:
        """Drop all items. Must be called on the event loop."""
        dropped_items = list(self._items)
        self._items.clear()
        self._in_flight = 0
        self._on_removed(dropped_items)
        self._update_events()

    async def run(self) -> None:
        """Send items until cancelled; resend a batch that gets no reply or a temporary refusal."""
        while True:
            self._in_flight = 0
            self._drop_excess()
            await self._filled.wait()
            await self._client.wait_until_connected()
            if not self._items:  # cleared while there was no connection
                continue
            batch = self._next_batch()
            self._in_flight = len(batch)
            try:
                await self._send(batch)
            except UnansweredError as problem:
                log.debug("sending again later: %s", problem)
                # The loss of the connection may not be noticed yet: give it time.
                await asyncio.sleep(RETRY_S)
                continue
            except RefusedError as refusal:
                self._on_refused(refusal)
                if refusal.code in TEMPORARY_CODES:
                    await asyncio.sleep(refusal.retry_after or PAUSE_S)
                    continue
            self._remove(batch)
            await asyncio.sleep(self._min_interval_s)

    def _next_batch(self) -> list[Item]:
        batch_key = self._batch_key(self._items[0])
        same = takewhile(lambda item: self._batch_key(item) == batch_key, self._items)
        return list(islice(same, self._batch))

    def _remove(self, batch: list[Item]) -> None:
        """Remove a sent batch from the queue, unless the queue has been cleared in the meantime."""
        if self._items and self._items[0] is batch[0]:
            for _ in batch:
                self._items.popleft()
            self._on_removed(batch)
        self._update_events()

    def _drop_excess(self) -> None:
        """Drop the oldest items that are not being sent, if there are too many."""
        excess = len(self._items) - self._in_flight - self._capacity
        if excess <= 0:
            return
        dropped_items = list(islice(self._items, self._in_flight, self._in_flight + excess))
        for _ in dropped_items:
            del self._items[self._in_flight]
        self.dropped += excess
        self._on_removed(dropped_items)

    def _update_events(self) -> None:
        filled, empty = (self._filled, self.empty) if self._items else (self.empty, self._filled)
        filled.set()
        empty.clear()
