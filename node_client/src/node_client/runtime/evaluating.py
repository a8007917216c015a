"""Evaluation on the held-out questions, between training steps."""

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
class TimedScore:
    """A score and the seconds that it took, without the time spent waiting for the model."""

    score: HeldOutScore
    seconds: float


class Evaluator:
    """Asks a trainer's held-out questions when they are due (`Trainer.evaluation_due`).

    Between two batches of questions, other work can use the model, so a judge round or a stop waits
    for at most one batch.
    """

    def __init__(
        self, trainer: Trainer, *, worker: ModelWorker, is_stopping: Callable[[], bool]
    ) -> None:
        self._trainer = trainer
        self._worker = worker
        self._is_stopping = is_stopping
        self._before: TimedScore | None = None

    async def prepare(self) -> None:
        """Ask the held-out questions before step 1, if they are due.

        The score is kept for the next call of `complete`, which adds it to its report. Does nothing
        if a score is already kept, or after step 1. Raises RefusedError if the verifier fails.
        """
        trainer = self._trainer
        if trainer.steps_done == 0 and trainer.evaluation_due and self._before is None:
            self._before = await self._ask()

    async def complete(self, report: StepReport) -> StepReport:
        """Ask the held-out questions if they are due; return the step's report with the score.

        After step 1 the report also has the score from `prepare`, if there is one. If the node is
        stopped during the questions, the report has no new score. If the answers cannot be scored,
        the report has a notice; no error is raised, because the step succeeded.
        """
        before, self._before = self._before, None
        after, failure = None, None
        if self._trainer.evaluation_due:
            try:
                after = await self._ask()
            except RefusedError as refusal:
                failure = self._describe(refusal)
        seconds = sum(timed.seconds for timed in (before, after) if timed is not None)
        return replace(
            report,
            held_out_before=before.score if before is not None else None,
            held_out=after.score if after is not None else None,
            seconds=report.seconds | ({"evaluate": seconds} if seconds else {}),
            notice=" ".join(filter(None, (report.notice, failure))) or None,
        )

    async def _ask(self) -> TimedScore | None:
        """Ask the held-out questions; return the score, or None if the node was stopped.

        Raises RefusedError when the verifier fails.
        """
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
        return TimedScore(score, seconds)

    def _describe(self, refusal: RefusedError) -> str:
        return (
            f"The held-out answers could not be scored after step {self._trainer.steps_done}: "
            f"{refusal.message} Training continues; the questions are asked again in "
            f"{self._trainer.config.eval_every} steps."
        )
