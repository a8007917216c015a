"""The training loop around the trainer: steps, checkpoints, pauses, changes of season."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic

import psutil
import torch

from node_client.display.events import MemoryUse
from node_client.display.lines import describe_step
from node_client.display.view import CURVE_STEPS, NodeView
from node_client.errors import MemoryExhaustedError, NodeError
from node_client.learning.report import StepReport
from node_client.learning.team import ALONE, Team
from node_client.learning.trainer import RolloutExchange, Trainer
from node_client.model.memory.budget import release_memory
from node_client.model.policy import Policy
from node_client.runtime.evaluating import Evaluator
from node_client.runtime.isolation import warn_of_missing
from node_client.runtime.metrics import figures_of, open_metrics
from node_client.runtime.pausing import POLL_S, Pauses
from node_client.runtime.saving import Saver
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.metrics import read_rewards
from node_client.swarm.backoff import doubling_backoff
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Arm, SeasonInfo
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.verifier import Verifier

LOG_EVERY_S = 5.0
# Failed steps in a row after which a run ends. With the waits between them these take at least two
# minutes, in which a shortage may end.
MAX_FAILURES = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Equipment:
    """Objects that all parts of a running client share."""

    policy: Policy
    verifier: Verifier
    worker: ModelWorker
    view: NodeView
    team: Team = ALONE


@dataclass(frozen=True)
class TrainingRules:
    """The season, and the node's name and arm in it."""

    season: SeasonInfo
    node: str
    arm: Arm


class TrainingHooks:
    """Hooks around steps and pauses, called on the event loop. By default they do nothing."""

    def before_step(self, trainer: Trainer) -> None:
        """Prepare for a step."""

    def after_step(self, report: StepReport, trainer: Trainer) -> None:
        """Handle the report of a finished step."""

    async def before_pause(self) -> None:
        """Prepare for a pause, for example disconnect."""

    def after_pause(self) -> None:
        """Resume after a pause, for example connect again."""


class Training:
    """The training loop of a node. Needs no connection to the coordinator.

    `backoff` returns the seconds to wait after the n-th failed step in a row, counted from 0.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        equipment: Equipment,
        exchange: RolloutExchange,
        pauses: Pauses | None = None,
        hooks: TrainingHooks | None = None,
        backoff: Callable[[int], float] = doubling_backoff,
    ) -> None:
        self._settings = settings
        self._equipment = equipment
        self._exchange = exchange
        self._worker = equipment.worker
        self._metric_sinks = open_metrics(settings)
        self._view = equipment.view
        self._saver = Saver(settings=settings, worker=equipment.worker, view=equipment.view)
        self._pauses = pauses or Pauses(settings, view=equipment.view)
        self._hooks = hooks or TrainingHooks()
        self._backoff = backoff
        self._trainer: Trainer | None = None
        self._evaluator: Evaluator | None = None
        self._rules: TrainingRules | None = None
        self._applied: TrainingRules | None = None
        self._failures = 0
        self._stopping = asyncio.Event()
        self._logged_clock = monotonic()
        self.has_rules = asyncio.Event()

    def set_rules(self, rules: TrainingRules) -> None:
        """Use `rules` from the next step on. `run` makes no step before the first call."""
        self._rules = rules
        self.has_rules.set()

    def stop(self) -> None:
        """Let `run` finish the current step, save, and return."""
        self._view.stopping = True
        self._stopping.set()
        self.has_rules.set()

    async def run(self) -> None:
        """Train until stopped or until `settings.steps` steps are done.

        Raises NodeError when the season's rules or a checkpoint cannot be used, memory runs out, or
        MAX_FAILURES steps in a row have failed.
        """
        try:
            await self._train()
        finally:
            for sink in self._metric_sinks:
                sink.close()

    async def _train(self) -> None:
        await self._pause_if_due()
        await self.has_rules.wait()
        await warn_of_missing(self._equipment.verifier, worker=self._worker, view=self._view)
        while not self._stopping.is_set() and self._view.steps_this_run != self._settings.steps:
            try:
                trainer = await self._apply_rules()
            except NodeError:
                # Settings may contradict the rules of the next season.
                if self._trainer is not None:
                    await self._saver.save_if_changed(self._trainer)
                raise
            if await self._pause_if_due():
                continue  # the rules may have changed
            began = monotonic()
            if self._view.round is not None:
                trainer.judge_round = self._view.round.number
            self._hooks.before_step(trainer)
            report = await self._step(trainer)
            if report is not None:
                self._view.memory_use = _measure_memory(self._equipment.policy.device)
                self._view.show_step(report, trainer.totals)
                if report.notice is not None:
                    self._view.show_notice(report.notice)
                    log.warning(report.notice)
                figures = {**figures_of(report), "season": trainer.season.name}
                for sink in self._metric_sinks:
                    sink.log(figures, step=report.step)
                self._hooks.after_step(report, trainer)
                self._saver.count_step(report)
                _log_held_out(report)
                self._log_step_if_due()
            await self._saver.save_if_due(trainer)
            await self._sleep(began + self._settings.step_seconds - monotonic())
        if self._trainer is not None:
            await self._saver.save_if_changed(self._trainer)

    async def _pause_if_due(self) -> bool:
        """Pause while `Pauses.due` returns a reason. Return False if it returns none."""
        return await self._pauses.pause_while_due(
            stopping=self._stopping, before=self._before_pause, after=self._hooks.after_pause
        )

    async def _before_pause(self) -> None:
        """Save, call the hooks' `before_pause`, and free cached memory."""
        if self._trainer is not None:
            await self._saver.save_if_changed(self._trainer)
        await self._hooks.before_pause()
        await self._worker.run(partial(release_memory, self._equipment.policy.device))

    async def _apply_rules(self) -> Trainer:
        """Return a trainer for the latest rules; create a new one only if the rules have changed.

        The first trainer loads the newest checkpoint. A new trainer continues from the state of the
        previous trainer.
        """
        rules = self._rules
        assert rules is not None
        if self._trainer is None or rules != self._applied:
            begins = self._trainer is None
            self._trainer = await self._worker.run(partial(self._make_trainer, rules))
            if begins:
                path, season = self._settings.state.metrics, rules.season.name
                self._view.curve.extend(read_rewards(path, season=season, limit=CURVE_STEPS))
            self._evaluator = Evaluator(
                self._trainer, worker=self._worker, is_stopping=self._stopping.is_set
            )
            if self._applied is not None and self._applied.season != rules.season:
                self._view.clear_training()
            self._applied = rules
            log.info("training in season %s, arm %s", rules.season.name, rules.arm)
        return self._trainer

    def _make_trainer(self, rules: TrainingRules) -> Trainer:
        if rules.season.generator != GENERATOR:
            raise NodeError(
                f"The season's tasks are generated by {rules.season.generator}, "
                f"but this client has {GENERATOR}.",
                fix="Install the client that the coordinator's join page names.",
            )
        trainer = Trainer(
            policy=self._equipment.policy,
            verifier=self._equipment.verifier,
            season=rules.season,
            config=replace(self._settings.training, arm=rules.arm),
            exchange=self._exchange,
            node=rules.node,
            key=self._settings.state.task_key(),
            team=self._equipment.team,
        )
        if self._trainer is not None:
            trainer.load_state(self._trainer.state_dict())
            return trainer
        self._saver.resume(trainer)
        for sink in self._metric_sinks:
            sink.begin(step=trainer.steps_done)
        return trainer

    async def _step(self, trainer: Trainer) -> StepReport | None:
        """Make one step and return its report, or None if the step failed or did not begin.

        Asks the held-out questions when they are due. The step fails if the verifier fails; this
        method then waits before it returns. The step does not begin if the node was stopped. Raises
        NodeError when MAX_FAILURES steps in a row have failed, and MemoryExhaustedError when memory
        runs out; the steps before are then saved if the failed one cannot have changed the policy.
        """
        assert self._evaluator is not None
        try:
            await self._evaluator.prepare()
            async with self._worker.turn:
                if self._stopping.is_set():
                    return None
                report = await self._worker.run(trainer.step)
        except RefusedError as refusal:
            await self._wait_after_failure(refusal, trainer)
            return None
        except MemoryExhaustedError:
            # Memory can also run out after an iteration, or after this process's part of one.
            if trainer.config.num_iterations == 1 and self._equipment.team.size == 1:
                await self._saver.save_if_changed(trainer)
            raise
        self._failures = 0
        return await self._evaluator.complete(report)

    async def _wait_after_failure(self, refusal: RefusedError, trainer: Trainer) -> None:
        """Show why a step failed; then wait before the next attempt, longer each time.

        The wait ends when the node is stopped. After MAX_FAILURES failed steps in a row, instead of
        waiting, save a checkpoint and raise NodeError.
        """
        self._view.show_refusal(refusal)
        log.warning("the step failed: %s", refusal)
        self._failures += 1
        if self._failures == MAX_FAILURES:
            await self._saver.save_if_changed(trainer)
            raise NodeError(
                f"{MAX_FAILURES} steps in a row failed: {refusal.message}",
                fix="Run `swarm-node doctor`; it tests the verifier.",
            ) from refusal
        await self._sleep(self._backoff(self._failures - 1))

    async def _sleep(self, seconds: float) -> None:
        """Wait for `seconds` or until stopped. The model is free for a judge round meanwhile."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    def _log_step_if_due(self) -> None:
        if self._view.steps_this_run == 1 or monotonic() - self._logged_clock >= LOG_EVERY_S:
            self._logged_clock = monotonic()
            log.info(describe_step(self._view))


class NoTraining:
    """Replaces `Training` in the arm `base`: the node answers the judge with its model untrained.

    It neither reads nor writes checkpoints: those of an earlier run in the same state folder remain
    for later runs in another arm.
    """

    def __init__(self, *, checkpoints: Path, pauses: Pauses, hooks: TrainingHooks) -> None:
        self._checkpoints = checkpoints
        self._pauses = pauses
        self._hooks = hooks
        self._stopped = asyncio.Event()

    def set_rules(self, rules: TrainingRules) -> None:
        """Do nothing: the rules of training do not apply to an untrained model."""

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped.set()

    async def run(self) -> None:
        """Wait until stopped, with the same pauses as a node that trains."""
        log.info("arm base: this node answers the judge with its model untrained")
        if any(self._checkpoints.glob("step-*")):
            log.info("the checkpoints in %s are not used", self._checkpoints)
        while not self._stopped.is_set():
            await self._pauses.pause_while_due(
                stopping=self._stopped,
                before=self._hooks.before_pause,
                after=self._hooks.after_pause,
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._stopped.wait()


def _log_held_out(report: StepReport) -> None:
    """Log the held-out scores of a step's report; does nothing if the report has none."""
    if report.held_out_before is not None:
        log.info("held out, before training: %s", report.held_out_before)
    if report.held_out is not None:
        log.info("held out, after step %d: %s", report.step, report.held_out)


def _measure_memory(device: torch.device) -> MemoryUse:
    """Return this process's memory use in bytes; `accelerator` is None except on CUDA and MPS."""
    return MemoryUse(
        process=psutil.Process().memory_info().rss, accelerator=_accelerator_memory(device)
    )


def _accelerator_memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device)
    if device.type == "mps":
        return torch.mps.driver_allocated_memory()
    return None
