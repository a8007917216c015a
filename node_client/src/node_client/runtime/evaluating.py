"""The held-out questions, asked between steps."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from node_client.learning.questions.held_out import HeldOutScore
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.runtime.worker import ModelWorker
from swarm_protocol.errors import RefusedError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """A score that took so many seconds, waiting for others not counted."""

    score: HeldOutScore
    seconds: float


class Evaluator:
    """Asks a trainer's held-out questions when they are due.

    Each batch is a turn of its own at the model, so that an exam, or whoever stops the node, waits
    for one batch at most.
    """

    def __init__(
        self, trainer: Trainer, *, worker: ModelWorker, is_stopping: Callable[[], bool]
    ) -> None:
        self._trainer = trainer
        self._worker = worker
        self._is_stopping = is_stopping
        self._before: Outcome | None = None

    async def prepare(self) -> None:
        """Ask them before the very first step, once. Raises RefusedError."""
        trainer = self._trainer
        if trainer.steps_done == 0 and trainer.evaluation_due and self._before is None:
            self._before = await self._ask()

    async def complete(self, report: StepReport) -> StepReport:
        """Return the report of the latest step with the scores that belong to it.

        Where the questions cannot be judged it says so: the step was made all the same.
        """
        before, self._before = self._before, None
        after, failure = None, None
        if self._trainer.evaluation_due:
            try:
                after = await self._ask()
            except RefusedError as refusal:
                failure = self._describe(refusal)
        seconds = sum(asked.seconds for asked in (before, after) if asked is not None)
        return replace(
            report,
            held_out_before=before.score if before is not None else None,
            held_out=after.score if after is not None else None,
            seconds=report.seconds | ({"evaluate": seconds} if seconds else {}),
            notice=" ".join(filter(None, (report.notice, failure))) or None,
        )

    async def _ask(self) -> Outcome | None:
        """Return the score, or none for whoever was stopped meanwhile. Raises RefusedError."""
        evaluation = self._trainer.begin_evaluation()
        score, seconds = None, 0.0
        while score is None:
            async with self._worker.turn:
                if self._is_stopping():
                    log.info("stopped before all held-out questions were asked")
                    return None
                began = perf_counter()
                score = await self._worker.run(evaluation.ask)
                seconds += perf_counter() - began
        return Outcome(score, seconds)

    def _describe(self, refusal: RefusedError) -> str:
        return (
            f"The held-out questions could not be judged after step {self._trainer.steps_done}: "
            f"{refusal.message} Training goes on, and they are asked again in "
            f"{self._trainer.config.eval_every} steps."
        )
