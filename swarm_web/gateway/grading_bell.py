"""Requests grading once for many answers, because a thousand nodes may submit at once."""

import asyncio
import logging
from collections.abc import Callable

from asgiref.sync import sync_to_async
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

# How long answers are collected before grading is requested.
PAUSE_S = 0.1


class GradingBell:
    """Calls `enqueue` shortly after a ring, once for all rings until then; use one per event loop.

    Ring after the answers are committed. If the process is killed and a ring lost, grading is
    delayed by some seconds: beat also schedules it for waiting answers.
    """

    def __init__(self, enqueue: Callable[[], object], *, pause_s: float = PAUSE_S) -> None:
        self._enqueue = sync_to_async(enqueue, thread_sensitive=False)
        self._pause_s = pause_s
        self._waiting: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Request grading."""
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._call())

    async def _call(self) -> None:
        await asyncio.sleep(self._pause_s)
        # Later rings need another call.
        self._waiting = None
        try:
            await self._enqueue()
        except OperationalError:
            logger.warning("could not ask for grading; beat will", exc_info=True)
