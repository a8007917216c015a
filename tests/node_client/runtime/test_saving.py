"""Checkpoints are saved at the right times, together with the totals of a node's lifetime."""

import errno
from pathlib import Path

import pytest
import torch

from node_client.display.events import CheckpointSaved
from node_client.display.lines import describe_ending
from node_client.display.view import NodeView
from node_client.errors import MemoryExhaustedError
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.runtime.alone import NoExchange, train_offline
from node_client.runtime.saving import Saver, is_save_due
from node_client.runtime.training import Equipment, Training, TrainingHooks, TrainingRules
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.settings.train_config import TrainConfig
from node_client.storage.state import Lifetime, StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import make_trainer, toy_policy, toy_season
from tests.node_client.panel_views import full_view
from tests.node_client.shell_fakes import empty_view


@pytest.mark.parametrize(
    ("steps", "seconds", "due"),
    [
        (50, 60, True),
        (49, 60, False),
        (5000, 29, False),
        (1, 300, True),
        (0, 1000, False),
    ],
)
def test_checkpoints_are_neither_too_rare_nor_too_frequent(
    steps: int, seconds: float, due: bool
) -> None:
    assert is_save_due(steps=steps, seconds=seconds, save_steps=50) is due


async def run_alone(folder: Path, verifier: Verifier, *, steps: int) -> NodeView:
    settings = Settings(state=StateDir(folder), model="toy", arm="isolated", steps=steps)
    view = empty_view()
    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        await train_offline(settings, equipment=equipment).run()
    return view


def lines_set_aside(folder: Path) -> int:
    [metrics] = folder.glob("metrics-until-*")
    return len(metrics.read_text().splitlines())


async def test_lifetime_totals_continue_after_restarts(tmp_path: Path, verifier: Verifier) -> None:
    first = (await run_alone(tmp_path, verifier, steps=2)).lifetime
    both = (await run_alone(tmp_path, verifier, steps=1)).lifetime
    assert (first.steps, both.steps) == (2, 3)
    assert (first.rollouts_made, both.rollouts_made) == (16, 24)
    assert both.tokens > first.tokens > 0
    assert both.seconds > first.seconds > 0
    assert StateDir(tmp_path).load_lifetime() == both


async def test_totals_of_a_killed_run_are_those_of_its_checkpoint(
    tmp_path: Path, verifier: Verifier
) -> None:
    await run_alone(tmp_path, verifier, steps=2)
    # A client that is killed at this point has written the checkpoint, but not yet its totals.
    StateDir(tmp_path).save_lifetime(Lifetime())
    assert (await run_alone(tmp_path, verifier, steps=1)).lifetime.steps == 3


async def test_fresh_run_adds_to_the_lifetime_and_keeps_the_earlier_metrics(
    tmp_path: Path, verifier: Verifier
) -> None:
    await run_alone(tmp_path, verifier, steps=2)
    (tmp_path / "checkpoints").rename(tmp_path / "aside")
    assert (await run_alone(tmp_path, verifier, steps=1)).lifetime.steps == 3
    assert lines_set_aside(tmp_path) == 2


class UnsavablePolicy(Policy):
    """A policy that raises `problem` instead of being saved."""

    problem: BaseException | None = None

    def save(self, folder: Path) -> None:
        if self.problem is not None:
            raise self.problem
        super().save(folder)


@pytest.mark.parametrize(
    ("problem", "fix"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "Free some space"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "Close other"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "Close other"),
        (MemoryError(), "Close other"),
    ],
)
async def test_save_that_fails_for_lack_of_space_is_reported_and_retried(
    tmp_path: Path, verifier: Verifier, problem: Exception, fix: str
) -> None:
    policy, view = toy_policy(), empty_view()
    policy.__class__ = UnsavablePolicy
    assert isinstance(policy, UnsavablePolicy)
    trainer = make_trainer(verifier, policy=policy)
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated")
    async with ModelWorker() as worker:
        saver = Saver(settings=settings, worker=worker, view=view)
        saver.resume(trainer)
        view.show_step(trainer.step(), trainer.totals)
        policy.problem = problem
        await saver.save_if_changed(trainer)
        assert view.problem is not None
        assert (view.problem.code, view.saved) == ("checkpoint", None)
        assert view.problem.fix.startswith(fix)
        assert list((tmp_path / "checkpoints").iterdir()) == []
        assert describe_ending(view, folder=tmp_path).startswith("NO step is saved")
        policy.problem = None
        await saver.save_if_changed(trainer)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]
    assert describe_ending(view, folder=tmp_path) == f"All steps are saved in {tmp_path}"


async def test_save_that_fails_for_another_reason_ends_the_run(
    tmp_path: Path, verifier: Verifier
) -> None:
    policy = toy_policy()
    policy.__class__ = UnsavablePolicy
    assert isinstance(policy, UnsavablePolicy)
    policy.problem = RuntimeError("shapes do not match")
    trainer = make_trainer(verifier, policy=policy)
    trainer.step()
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated")
    async with ModelWorker() as worker:
        saver = Saver(settings=settings, worker=worker, view=empty_view())
        with pytest.raises(RuntimeError, match="shapes do not match"):
            await saver.save_if_changed(trainer)


class ExhaustingHooks(TrainingHooks):
    """After each step, let the model find no memory for even a single completion."""

    def after_step(self, report: StepReport, trainer: Trainer) -> None:
        trainer.policy.sampling_budget.lower(0.0)


@pytest.mark.parametrize(("iterations", "saved"), [(1, 1), (2, None)])
async def test_steps_before_memory_ran_out_are_saved_if_the_policy_is_that_of_the_last_one(
    tmp_path: Path, verifier: Verifier, iterations: int, saved: int | None
) -> None:
    config = TrainConfig(num_iterations=iterations)
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated", training=config)
    view = empty_view()
    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        training = Training(
            settings=settings,
            equipment=equipment,
            exchange=NoExchange(),
            hooks=ExhaustingHooks(),
        )
        training.set_rules(TrainingRules(season=toy_season(), node="here", arm="isolated"))
        with pytest.raises(MemoryExhaustedError):
            await training.run()
    assert view.steps_this_run == 1
    assert (view.saved and view.saved.step) == saved


async def test_checkpoint_whose_totals_cannot_be_written_counts_as_saved(
    tmp_path: Path, verifier: Verifier, caplog: pytest.LogCaptureFixture
) -> None:
    trainer, view = make_trainer(verifier), empty_view()
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated")
    async with ModelWorker() as worker:
        saver = Saver(settings=settings, worker=worker, view=view)
        saver.resume(trainer)
        trainer.step()
        settings.state.progress.mkdir()  # prevents writing, like a full disk
        await saver.save_if_changed(trainer)
    assert view.problem is None
    assert view.saved is not None
    assert view.saved.step == 1
    assert "shows an earlier step" in caplog.text


def test_run_whose_checkpoints_are_all_damaged_is_not_called_resumed(
    tmp_path: Path, verifier: Verifier, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated")
    (settings.state.checkpoints / "step-00000003").mkdir(parents=True)
    saver = Saver(settings=settings, worker=ModelWorker(), view=empty_view())
    saver.resume(make_trainer(verifier))
    assert "is damaged" in caplog.text
    assert "resumed at" not in caplog.text


def test_last_line_names_the_saved_step() -> None:
    view = full_view()
    assert view.report is not None
    view.saved = CheckpointSaved(step=view.report.step - 1)
    line = describe_ending(view, folder=Path("state"))
    assert line == (
        f"NOT all steps are saved: the newest checkpoint in state is of step {view.report.step - 1}"
    )
