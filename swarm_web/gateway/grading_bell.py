"""Asking for grades once for many answers: a thousand nodes hand in at the same moment."""

import asyncio
import logging
from collections.abc import Callable

from asgiref.sync import sync_to_async
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

# So long answers are collected before their grading is asked for.
PAUSE_S = 0.1


class GradingBell:
    """Calls `enqueue` soon after a ring, once for all rings until then; one for an event loop.

    Ring after the answers are committed. A ring that is lost with the process costs a moment: beat
    has waiting answers graded every few seconds.
    """

    def __init__(self, enqueue: Callable[[], object], *, pause_s: float = PAUSE_S) -> None:
        self._enqueue = sync_to_async(enqueue, thread_sensitive=False)
        self._pause_s = pause_s
        self._waiting: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Ask for grades."""
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._call())

    async def _call(self) -> None:
        await asyncio.sleep(self._pause_s)
        # Whoever rings from here on is too late for this call.
        self._waiting = None
        try:
            await self._enqueue()
        except OperationalError:
            logger.warning("could not ask for grading; beat will", exc_info=True)
