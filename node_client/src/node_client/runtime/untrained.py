"""A node of the arm `base`: it answers the judge with its model untouched, for comparison."""

import asyncio
import logging
from pathlib import Path

from node_client.runtime.training import Enrolment

log = logging.getLogger(__name__)


class NoTraining:
    """Stands where other nodes' `Training` is, and waits.

    It neither reads nor writes a checkpoint: those of an earlier run in the same state folder stay
    there for a run in another arm.
    """

    def __init__(self, *, checkpoints: Path) -> None:
        self._checkpoints = checkpoints
        self._stopped = asyncio.Event()

    def enrol(self, enrolment: Enrolment) -> None:
        """Take no notice: the rules of training do not concern an untrained model."""

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped.set()

    async def run(self) -> None:
        """Wait until stopped."""
        log.info("arm base: this node answers the judge with its model untouched")
        if any(self._checkpoints.glob("step-*")):
            log.info("the checkpoints in %s stay unused", self._checkpoints)
        await self._stopped.wait()
