"""Steps that fail one after another: the pauses between them, and the save at the end."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from node_client.display.view import NodeView
from node_client.errors import NodeError
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.runtime.alone import NoExchange
from node_client.runtime.training import MAX_FAILURES, Equipment, Training, TrainingRules
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy, toy_season
from tests.node_client.shell_fakes import empty_view

NEVER_S = 1000.0


@pytest.fixture(autouse=True)
def failing_after_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the verifier fail in every step except the first."""
    step = Trainer.step

    def fail_later(self: Trainer) -> StepReport:
        if self.steps_done:
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")
        return step(self)

    monkeypatch.setattr(Trainer, "step", fail_later)


def make_training(
    settings: Settings,
    verifier: Verifier,
    worker: ModelWorker,
    view: NodeView,
    *,
    backoff: Callable[[int], float],
) -> Training:
    settings.state.path.mkdir(exist_ok=True)
    training = Training(
        settings=settings,
        equipment=Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view),
        exchange=NoExchange(),
        backoff=backoff,
    )
    training.set_rules(TrainingRules(season=toy_season(), node="here", arm="isolated"))
    return training


async def test_node_pauses_between_failed_steps_and_saves_before_it_gives_up(
    settings: Settings, verifier: Verifier
) -> None:
    view, pauses = empty_view(), list[int]()

    def note(attempt: int) -> float:
        pauses.append(attempt)
        return 0.0

    async with ModelWorker() as worker:
        training = make_training(settings, verifier, worker, view, backoff=note)
        with pytest.raises(NodeError, match="Gone"):
            await training.run()
    assert pauses == list(range(MAX_FAILURES - 1))
    assert view.saved is not None
    assert view.saved.step == 1


async def test_pause_ends_when_the_node_is_stopped(settings: Settings, verifier: Verifier) -> None:
    view = empty_view()

    def stop(attempt: int) -> float:
        training.stop()
        return NEVER_S

    async with ModelWorker() as worker:
        training = make_training(settings, verifier, worker, view, backoff=stop)
        await training.run()
    assert view.saved is not None
    assert view.saved.step == 1


async def test_unsupported_season_ends_the_node_without_losing_a_step(
    settings: Settings, verifier: Verifier
) -> None:
    view = empty_view()
    another = replace(toy_season(), generator="reasoning-gym 0.0.1")

    def begin_next_season(attempt: int) -> float:
        training.set_rules(TrainingRules(season=another, node="here", arm="isolated"))
        return 0.0

    async with ModelWorker() as worker:
        training = make_training(settings, verifier, worker, view, backoff=begin_next_season)
        with pytest.raises(NodeError, match=r"reasoning-gym 0\.0\.1"):
            await training.run()
    assert view.saved is not None
    assert view.saved.step == 1
