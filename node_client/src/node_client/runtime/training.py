"""The training loop around the trainer: steps, checkpoints, changes of season."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Protocol

from node_client.display.lines import describe_step
from node_client.display.view import CURVE_STEPS, View
from node_client.errors import NodeError
from node_client.learning.report import StepReport
from node_client.learning.team import ALONE, Team
from node_client.learning.trainer import RolloutExchange, Trainer
from node_client.model.memory.budget import release_memory
from node_client.model.policy import Policy
from node_client.runtime.evaluating import Evaluator
from node_client.runtime.isolation import warn_of_missing
from node_client.runtime.metrics import figures_of, open_metrics
from node_client.runtime.pausing import Pauses
from node_client.runtime.saving import Saver
from node_client.runtime.vitals import measure_vitals
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.metrics import read_rewards
from node_client.swarm.backoff import doubling_backoff
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Arm, SeasonInfo
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.verifier import Verifier

LOG_EVERY_S = 5.0
# With the pauses between them two minutes, in which a machine that was short of something may
# have it again.
MOST_FAILURES = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Equipment:
    """What every part of a running client shares."""

    policy: Policy
    verifier: Verifier
    worker: ModelWorker
    view: View
    team: Team = ALONE


@dataclass(frozen=True)
class Enrolment:
    """Under which rules, which name and in which arm a node trains."""

    season: SeasonInfo
    node: str
    arm: Arm


class Away(Protocol):
    """What a node does around its pauses."""

    async def leave(self) -> None:
        """Finish what others wait for, and say goodbye."""

    def come_back(self) -> None:
        """Take part again."""


class Nobody:
    """A node that nobody waits for."""

    async def leave(self) -> None:
        """Just leave."""

    def come_back(self) -> None:
        """Just come back."""


class Training:
    """Trains until told to stop, whatever the connection does.

    `before_step` and `after_step` are called on the event loop around each step. `backoff` returns
    the seconds to wait after so many failed steps in a row, counted from 0.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        equipment: Equipment,
        exchange: RolloutExchange,
        pauses: Pauses | None = None,
        away: Away | None = None,
        before_step: Callable[[Trainer], None] = lambda trainer: None,
        after_step: Callable[[StepReport, Trainer], None] = lambda report, trainer: None,
        backoff: Callable[[int], float] = doubling_backoff,
    ) -> None:
        self._settings = settings
        self._equipment = equipment
        self._exchange = exchange
        self._worker = equipment.worker
        self._metrics = open_metrics(settings)
        self._view = equipment.view
        self._saver = Saver(settings=settings, worker=equipment.worker, view=equipment.view)
        self._pauses = pauses or Pauses(settings, view=equipment.view)
        self._away = away or Nobody()
        self._before_step = before_step
        self._after_step = after_step
        self._backoff = backoff
        self._trainer: Trainer | None = None
        self._evaluator: Evaluator | None = None
        self._enrolment: Enrolment | None = None
        self._followed: Enrolment | None = None
        self._failures = 0
        self._stopping = asyncio.Event()
        self._logged_clock = monotonic()
        self.enrolled = asyncio.Event()

    def enrol(self, enrolment: Enrolment) -> None:
        """Train by these rules from the next step on."""
        self._enrolment = enrolment
        self.enrolled.set()

    def stop(self) -> None:
        """Finish the current step, save, and return from `run`."""
        self._stopping.set()
        self.enrolled.set()

    async def run(self) -> None:
        """Train until stopped or done. Raises NodeError when training is impossible."""
        try:
            await self._train()
        finally:
            self._metrics.close()

    async def _train(self) -> None:
        await self._pause_if_due()
        await self.enrolled.wait()
        await warn_of_missing(self._equipment.verifier, worker=self._worker, view=self._view)
        while not self._stopping.is_set() and self._view.steps_here != self._settings.steps:
            try:
                trainer = await self._follow_enrolment()
            except NodeError:
                # Settings that worked may not fit the rules of the next season.
                if self._trainer is not None:
                    await self._saver.save_the_rest(self._trainer)
                raise
            if await self._pause_if_due():
                continue  # the rules may be others by now
            began = monotonic()
            if self._view.round is not None:
                trainer.judge_round = self._view.round.number
            self._before_step(trainer)
            report = await self._step(trainer)
            if report is not None:
                self._view.vitals = measure_vitals(self._equipment.policy.device)
                self._view.note_step(report, trainer.totals)
                if report.notice is not None:
                    self._view.note_notice(report.notice)
                    log.warning(report.notice)
                self._metrics.log(
                    {**figures_of(report), "season": trainer.season.name}, step=report.step
                )
                self._after_step(report, trainer)
                self._saver.note_step(report)
                _log_held_out(report)
                self._log_sometimes()
            await self._saver.save_if_due(trainer)
            await self._rest(began + self._settings.step_seconds - monotonic())
        if self._trainer is not None:
            await self._saver.save_the_rest(self._trainer)

    async def _pause_if_due(self) -> bool:
        """Pause as long as there is a reason to; return whether there was one."""
        return await self._pauses.take(
            stopping=self._stopping, leave=self._leave, come_back=self._away.come_back
        )

    async def _leave(self) -> None:
        """Save, finish what others wait for, and give back the memory that is only kept ready."""
        if self._trainer is not None:
            await self._saver.save_the_rest(self._trainer)
        await self._away.leave()
        await self._worker.run(partial(release_memory, self._equipment.policy.device))

    async def _follow_enrolment(self) -> Trainer:
        """Return a trainer for the latest rules, resuming from a checkpoint the first time."""
        enrolment = self._enrolment
        assert enrolment is not None
        if self._trainer is None or enrolment != self._followed:
            begins = self._trainer is None
            self._trainer = await self._worker.run(partial(self._make_trainer, enrolment))
            if begins:
                self._recall_rewards(enrolment.season)
            self._evaluator = Evaluator(
                self._trainer, worker=self._worker, is_stopping=self._stopping.is_set
            )
            if self._followed is not None and self._followed.season != enrolment.season:
                self._view.forget_training()
            self._followed = enrolment
            log.info("season %s, arm %s", enrolment.season.name, enrolment.arm)
        return self._trainer

    def _recall_rewards(self, season: SeasonInfo) -> None:
        """Show how the steps went that this run goes on from."""
        path = self._settings.state.metrics
        self._view.recall_rewards(read_rewards(path, season=season.name, most=CURVE_STEPS))

    def _make_trainer(self, enrolment: Enrolment) -> Trainer:
        if enrolment.season.generator != GENERATOR:
            raise NodeError(
                f"The season's tasks come from {enrolment.season.generator}, "
                f"but this client makes them with {GENERATOR}.",
                fix="Install the client that the coordinator's join page names.",
            )
        trainer = Trainer(
            policy=self._equipment.policy,
            verifier=self._equipment.verifier,
            season=enrolment.season,
            config=replace(self._settings.training, arm=enrolment.arm),
            exchange=self._exchange,
            node=enrolment.node,
            key=self._settings.state.task_key(),
            team=self._equipment.team,
        )
        if self._trainer is not None:
            trainer.load_state(self._trainer.state_dict())
            return trainer
        self._saver.resume(trainer)
        self._metrics.begin(step=trainer.steps_done)
        return trainer

    async def _step(self, trainer: Trainer) -> StepReport | None:
        """Make one step, or none when the verifier fails; it may work again on other tasks.

        There is none either for whoever was stopped while an exam had the turn. Held-out questions
        that are due are asked before or after it.
        """
        assert self._evaluator is not None
        try:
            await self._evaluator.prepare()
            async with self._worker.turn:
                if self._stopping.is_set():
                    return None
                report = await self._worker.run(trainer.step)
        except RefusedError as refusal:
            await self._bear(refusal, trainer)
            return None
        self._failures = 0
        return await self._evaluator.complete(report)

    async def _bear(self, refusal: RefusedError, trainer: Trainer) -> None:
        """Pause before the next try, longer each time, or until stopped.

        Raises NodeError, with all saved, when too many steps in a row have failed.
        """
        self._view.note_refusal(refusal)
        log.warning("no step: %s", refusal)
        self._failures += 1
        if self._failures == MOST_FAILURES:
            await self._saver.save_the_rest(trainer)
            raise NodeError(
                f"{MOST_FAILURES} steps in a row failed: {refusal.message}",
                fix="Run `swarm-node doctor`; it tests the verifier.",
            ) from refusal
        await self._rest(self._backoff(self._failures - 1))

    async def _rest(self, seconds: float) -> None:
        """Idle for `seconds`, or until stopped. The model is free for an exam meanwhile."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    def _log_sometimes(self) -> None:
        if self._view.steps_here == 1 or monotonic() - self._logged_clock >= LOG_EVERY_S:
            self._logged_clock = monotonic()
            log.info(describe_step(self._view))


def _log_held_out(report: StepReport) -> None:
    """Write down each evaluation, however fast the steps follow each other."""
    if report.held_out_before is not None:
        log.info("held out, before training: %s", report.held_out_before)
    if report.held_out is not None:
        log.info("held out, after step %d: %s", report.step, report.held_out)
