"""Decides when to write checkpoints, stores the node's totals in them, and resumes a run."""

import logging
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

import msgspec

from node_client.display.view import NodeView
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.model.memory.budget import is_out_of_memory, release_memory
from node_client.runtime.hub_upload import open_uploader, trace_run
from node_client.runtime.startup import check_resumed, set_lost_metrics_aside
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage import checkpoint
from node_client.storage.manifest import Merit
from node_client.storage.state import Lifetime, TrainingProgress

SAVE_AT_LEAST_EVERY_S = 300.0
SAVE_AT_MOST_EVERY_S = 30.0

log = logging.getLogger(__name__)


def is_save_due(*, steps: int, seconds: float, save_steps: int) -> bool:
    """Return whether a checkpoint is due.

    `steps` counts from the last checkpoint, `seconds` from the last attempt to write one. A
    checkpoint is due after `save_steps` steps, if at least 30 s have passed. After 300 s, one step
    is enough.
    """
    if seconds >= SAVE_AT_LEAST_EVERY_S:
        return steps > 0
    return steps >= save_steps and seconds >= SAVE_AT_MOST_EVERY_S


class Saver:
    """Saves a run's checkpoints, its progress, and the totals of all runs of the node."""

    def __init__(self, *, settings: Settings, worker: ModelWorker, view: NodeView) -> None:
        self._settings = settings
        self._worker = worker
        self._view = view
        self._step = 0
        self._clock = monotonic()
        self._shared_before = 0
        self._uploader = open_uploader(settings, view)

    def resume(self, trainer: Trainer) -> None:
        """Load the newest intact checkpoint into the trainer, and the node's totals into the view.

        Without an intact checkpoint, the run starts at step 1 and the totals come from the state
        folder. In this case, the metrics files of an earlier run are renamed if that run had a
        checkpoint.

        Raises CheckpointError if the newest intact checkpoint is of another model or client
        version. Also raises it if there is no intact checkpoint and the settings require one
        (`--resume`). Raises SettingsError if the totals in the state folder cannot be read, and
        OSError if the metrics files cannot be renamed.
        """
        state = self._settings.state
        resumed = checkpoint.resume(state.checkpoints, trainer)
        check_resumed(resumed, start=self._settings.start, checkpoints=state.checkpoints)
        if trainer.steps_done == 0:
            set_lost_metrics_aside(state)
        if resumed is not None:
            for problem in resumed.problems:
                log.warning(problem)
            self._view.resumed_step = self._step = resumed.step
            if resumed.step > 0:
                log.info("resumed at step %d", resumed.step)
        if resumed is not None and "lifetime" in resumed.run:
            self._view.lifetime = msgspec.convert(resumed.run["lifetime"], Lifetime)
        else:
            self._view.lifetime = state.load_lifetime()
        self._shared_before = self._view.lifetime.rollouts_shared

    def count_step(self, report: StepReport) -> None:
        """Add a step to the view's `lifetime`, the totals of all runs."""
        before = self._view.lifetime
        self._view.lifetime = Lifetime(
            steps=before.steps + 1,
            tokens=before.tokens + report.completion_tokens,
            rollouts_made=before.rollouts_made + report.generated,
            rollouts_shared=self._shared_before + self._view.published,
            external_used=before.external_used + report.external_used,
            seconds=before.seconds + sum(report.seconds.values()),
        )

    async def save_if_due(self, trainer: Trainer) -> None:
        """Write a checkpoint if one is due."""
        if is_save_due(
            steps=trainer.steps_done - self._step,
            seconds=monotonic() - self._clock,
            save_steps=self._settings.save_steps,
        ):
            await self._save(trainer)

    async def save_if_changed(self, trainer: Trainer) -> None:
        """Write a checkpoint if there were steps since the last one; wait for an unfinished upload.

        The wait ends after UPLOAD_TIMEOUT_S seconds.
        """
        if trainer.steps_done != self._step:
            await self._save(trainer)
        if self._uploader is not None:
            await self._uploader.finish()

    async def _save(self, trainer: Trainer) -> None:
        """Write a checkpoint. If the disk or memory prevents that, show the problem and return."""
        self._clock = monotonic()
        try:
            path = await self._worker.run(partial(self._write, trainer))
        except (OSError, RuntimeError, MemoryError) as problem:
            self._note_failure(problem)
        else:
            self._step = trainer.steps_done
            self._view.show_checkpoint(trainer.steps_done)
            self._offer_upload(path, trainer)
            log.info("saved a checkpoint at step %d", trainer.steps_done)
            return
        # Not in the `except` block, where the exception still refers to the memory of the attempt.
        release_memory(trainer.policy.device)

    def _note_failure(self, problem: OSError | RuntimeError | MemoryError) -> None:
        """Show that the disk or memory prevented a checkpoint. Raise any other `problem`."""
        if isinstance(problem, OSError):
            why = str(problem)
            fix = f"Free some space in {self._settings.state.path}."
        elif is_out_of_memory(problem):
            why = "memory ran out"
            fix = "Close other programs: saving needs a second copy of the float32 weights."
        else:
            raise problem
        self._view.show_problem("checkpoint", f"No checkpoint was saved: {why}", fix)
        log.warning("no checkpoint was saved: %s", why)

    def _offer_upload(self, path: Path, trainer: Trainer) -> None:
        """Offer the new checkpoint to the uploader, if the settings ask for uploads to the hub."""
        season = trainer.season.name
        if self._uploader is not None:
            origin = trace_run(self._view, step=trainer.steps_done, season=season)
            merit = _merit_of(self._view, trainer)
            self._uploader.offer(path, merit=merit, origin=origin)

    def _write(self, trainer: Trainer) -> Path:
        """Write a checkpoint, then progress and totals; return the checkpoint's path.

        Raises the errors of `checkpoint.save`. If only progress and totals cannot be written, a
        warning is logged: a run resumes without them, because the checkpoint has the totals too.
        """
        lifetime = self._view.lifetime
        path = checkpoint.save(
            self._settings.state.checkpoints,
            trainer,
            run={"lifetime": msgspec.to_builtins(lifetime)},
            merit=_merit_of(self._view, trainer),
            limit=trainer.config.save_total_limit,
        )
        try:
            self._write_totals(trainer, lifetime)
        except OSError as problem:
            log.warning("`swarm-node status` shows an earlier step than was saved: %s", problem)
        return path

    def _write_totals(self, trainer: Trainer, lifetime: Lifetime) -> None:
        """Write the run's progress and the node's totals. Raises OSError."""
        state, report = self._settings.state, self._view.report
        state.save_progress(
            TrainingProgress(
                step=trainer.steps_done,
                training_reward=0.0 if report is None else report.training_reward,
                model=trainer.policy.name,
                season=trainer.season.name,
                saved_at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )
        state.save_lifetime(lifetime)


def _merit_of(view: NodeView, trainer: Trainer) -> Merit | None:
    """Return the score by which checkpoints are compared, or None if there is none yet.

    It is the latest held-out score if the run has held-out questions (`eval_tasks`), otherwise
    the latest judge score. A run uses only one of the two, because they cannot be compared.
    """
    season = trainer.season.name
    if trainer.config.eval_tasks:
        if view.held_out is None:
            return None
        return Merit(kind="held_out", season=season, value=view.held_out.score)
    if view.standing is not None and view.standing.score is not None:
        return Merit(kind="judge_score", season=season, value=view.standing.score)
    return None
