"""Requests grading once for many answers, because a thousand nodes may submit at once."""

import asyncio
import logging
from collections.abc import Callable

from asgiref.sync import sync_to_async
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

# How long answers are collected before grading is requested.
PAUSE_S = 0.1


class GradingTrigger:
    """Calls `enqueue` shortly after `fire`, once for all calls until then; use one per event loop.

    Fire after the answers are committed. If the process is killed before it calls `enqueue`,
    grading is delayed by some seconds: beat also schedules it for waiting answers.
    """

    def __init__(self, enqueue: Callable[[], object], *, pause_s: float = PAUSE_S) -> None:
        self._enqueue = sync_to_async(enqueue, thread_sensitive=False)
        self._pause_s = pause_s
        self._waiting: asyncio.Task[None] | None = None

    def fire(self) -> None:
        """Request grading; `enqueue` is called within `pause_s` seconds."""
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._enqueue_later())

    async def _enqueue_later(self) -> None:
        await asyncio.sleep(self._pause_s)
        # Answers stored from here on need another call.
        self._waiting = None
        try:
            await self._enqueue()
        except OperationalError:
            logger.warning("could not enqueue grading; beat will do it", exc_info=True)
