"""A node that is asked to stop does so after the batch or step in progress."""

import asyncio
from dataclasses import replace
from pathlib import Path

from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.runtime.alone import NoExchange, practice_season
from node_client.runtime.training import Equipment, Training, TrainingHooks, TrainingRules
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from swarm_protocol.messages import SubmitAnswers
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, open_round, running
from tests.node_client.fakes import toy_policy
from tests.node_client.runtime.answerers import open_spool, running_answerer
from tests.node_client.shell_fakes import EchoModel, empty_view, running_connection


async def test_answering_ends_after_the_batch_in_progress(tmp_path: Path) -> None:
    coordinator, view, worker = Coordinator(), empty_view(), ModelWorker()

    def stop() -> None:
        view.stopping = True

    echo = EchoModel(before_batch=stop)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo, worker=worker, view=view, folder=tmp_path) as answerer,
    ):
        coordinator.round = open_round(questions=40)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        async with worker.turn:
            assert len(echo.questions) == 16
        await answerer.outbox.empty.wait()
    assert len(coordinator.answers) == 16
    assert len(open_spool(tmp_path).answered(1)) == 16


def make_training(settings: Settings, equipment: Equipment, hooks: TrainingHooks) -> Training:
    settings.state.path.mkdir(exist_ok=True)
    training = Training(settings=settings, equipment=equipment, exchange=NoExchange(), hooks=hooks)
    training.set_rules(TrainingRules(season=practice_season(), node="here", arm="isolated"))
    return training


async def test_no_step_follows_if_the_node_was_stopped_while_answering(
    settings: Settings, verifier: Verifier
) -> None:
    view, waits = empty_view(), asyncio.Event()

    class Hooks(TrainingHooks):
        def before_step(self, trainer: Trainer) -> None:
            waits.set()

    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        training = make_training(settings, equipment, Hooks())
        async with worker.turn:  # as a judge round holds it
            running_training = asyncio.create_task(training.run())
            await waits.wait()
            training.stop()
        await running_training
    assert view.steps_this_run == 0


async def test_node_resting_after_a_step_stops_immediately(
    settings: Settings, verifier: Verifier
) -> None:
    view, stepped = empty_view(), asyncio.Event()

    class Hooks(TrainingHooks):
        def after_step(self, report: StepReport, trainer: Trainer) -> None:
            stepped.set()

    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        training = make_training(replace(settings, step_seconds=3600.0), equipment, Hooks())
        async with asyncio.timeout(60):
            running_training = asyncio.create_task(training.run())
            await stepped.wait()
            async with worker.turn:  # a judge round need not wait for the rest to end
                training.stop()
            await running_training
    assert view.steps_this_run == 1
