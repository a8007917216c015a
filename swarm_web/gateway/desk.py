"""Where answers are handed in: stored for many nodes in one transaction."""

import asyncio
from collections.abc import Callable, Sequence

from channels.db import database_sync_to_async

from judge.services.answers import Receipt, Submission
from swarm_protocol.errors import RefusedError

# Bounds how long a transaction holds its round back from moving on.
MOST_AT_ONCE = 128

Store = Callable[[Sequence[Submission]], Sequence[Receipt | RefusedError]]


class AnswerDesk:
    """Collects what comes in while the last batch is written, and writes it as the next one.

    As Postgres does with commits: a lone node waits for nobody, and a thousand that come at once
    share a few transactions. A receipt is given only after the commit. One for an event loop.
    """

    def __init__(self, store: Store) -> None:
        self._store = database_sync_to_async(store)
        self._waiting: list[tuple[Submission, asyncio.Future[Receipt]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def hand_in(self, submission: Submission) -> Receipt:
        """Store a node's answers. Raises RefusedError, or what the database raises."""
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._waiting.append((submission, receipt))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return await receipt

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            try:
                outcomes = await self._store([submission for submission, _ in batch])
            except Exception as problem:  # noqa: BLE001 - each of them answers for it, at its edge
                outcomes = [problem] * len(batch)
            for (_, receipt), outcome in zip(batch, outcomes, strict=True):
                if receipt.cancelled():
                    continue  # the node hung up; what it handed in is stored
                if isinstance(outcome, Exception):
                    receipt.set_exception(outcome)
                else:
                    receipt.set_result(outcome)
