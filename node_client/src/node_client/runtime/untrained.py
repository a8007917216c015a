"""A node of the arm `base`: it answers the judge with its model untouched, for comparison."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from node_client.runtime.pausing import LOOK_EVERY_S, Pauses
from node_client.runtime.training import Away, Enrolment

log = logging.getLogger(__name__)


class NoTraining:
    """Stands where other nodes' `Training` is, and waits.

    It neither reads nor writes a checkpoint: those of an earlier run in the same state folder stay
    there for a run in another arm.
    """

    def __init__(self, *, checkpoints: Path, pauses: Pauses, away: Away) -> None:
        self._checkpoints = checkpoints
        self._pauses = pauses
        self._away = away
        self._stopped = asyncio.Event()

    def enrol(self, enrolment: Enrolment) -> None:
        """Take no notice: the rules of training do not concern an untrained model."""

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped.set()

    async def run(self) -> None:
        """Wait until stopped; pause as other nodes do."""
        log.info("arm base: this node answers the judge with its model untouched")
        if any(self._checkpoints.glob("step-*")):
            log.info("the checkpoints in %s stay unused", self._checkpoints)
        while not self._stopped.is_set():
            await self._pauses.take(
                stopping=self._stopped, leave=self._away.leave, come_back=self._away.come_back
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._stopped.wait()
