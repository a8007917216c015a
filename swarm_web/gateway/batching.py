"""Batches the work of many connections: items that arrive during one batch form the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from swarm_web.core.write_behind import STORE_ERRORS

Item = TypeVar("Item")
Result = TypeVar("Result")

# Bounds the duration of a batch's transaction.
MAX_BATCH = 128


class Batcher(Generic[Item, Result]):
    """Collects the items that arrive while `work` processes a batch, and makes new batches of them.

    This is group commit, as in Postgres: an item that arrives alone is processed at once, and a
    thousand items that arrive together share a few transactions. `work` returns a result or an
    exception for each item, in order. If `work` raises one of STORE_ERRORS, all items of the batch
    fail. If it raises another exception, each item is processed again in a batch of its own, so
    that only the bad item fails. Processing an item again must do no harm. A batch has at most
    MAX_BATCH items. Use one batcher per event loop.
    """

    def __init__(
        self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]
    ) -> None:
        self._work = work
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._working: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return how many items are waiting for a batch."""
        return len(self._waiting)

    async def do(self, item: Item) -> Result:
        """Wait until a batch with the item is processed, and return the item's result.

        Raises the exception that `work` returned or raised for the item.
        """
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._run())
        return await result

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            outcomes = await self._attempt([item for item, _ in batch])
            for (_, result), outcome in zip(batch, outcomes, strict=True):
                if result.cancelled():
                    continue  # the node disconnected; its request was processed
                if isinstance(outcome, Exception):
                    result.set_exception(outcome)
                else:
                    result.set_result(outcome)

    async def _attempt(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        try:
            return await self._work(items)
        except STORE_ERRORS as problem:
            return [problem] * len(items)
        except Exception as problem:  # noqa: BLE001 - raised by `do` to each caller
            if len(items) == 1:
                return [problem]
            return [outcome for item in items for outcome in await self._attempt([item])]
