"""A resumed run asks, mixes and learns as if it had not stopped, for all kinds of training."""

from dataclasses import replace
from pathlib import Path

import pytest

from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.runtime.alone import practice_season
from node_client.settings.choices import OptimizerKind
from node_client.settings.train_config import TrainConfig
from node_client.storage import checkpoint
from node_client.storage.tree import read_tree, write_tree
from swarm_protocol.messages import Arm
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import make_trainer

WAYS = {
    "history": TrainConfig(resampling="history", history_epoch=16),
    "dynamic": TrainConfig(resampling="dynamic"),
    "staged": TrainConfig(curriculum="staged", resampling="history", history_epoch=16),
    "ladder": TrainConfig(curriculum="ladder", mix="auto"),
}


def demo_trainer(verifier: Verifier, config: TrainConfig) -> Trainer:
    return make_trainer(
        verifier,
        policy=Policy.load("tiny", device="cpu"),
        season=practice_season(),
        config=replace(config, learning_rate=1e-3),
    )


def trained(verifier: Verifier, kind: OptimizerKind) -> Trainer:
    """Return a trainer after one step, on questions that the policy answers right and wrong."""
    trainer = demo_trainer(verifier, TrainConfig(optimizer=kind))
    assert trainer.step().grad_norm > 0
    return trainer


def without_times(report: StepReport) -> StepReport:
    return replace(report, seconds={})


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_resumed_run_equals_an_uninterrupted_one(
    verifier: Verifier, tmp_path: Path, way: str
) -> None:
    whole, resumed = (demo_trainer(verifier, WAYS[way]) for _ in range(2))
    for _ in range(3):
        whole.step()
    checkpoint.save(tmp_path, whole)
    checkpoint.resume(tmp_path, resumed)
    for _ in range(2):
        assert without_times(resumed.step()) == without_times(whole.step())
    for mine, its in zip(resumed.policy.trainable(), whole.policy.trainable(), strict=True):
        assert mine.tolist() == its.tolist()


def test_settings_may_change_between_two_runs(verifier: Verifier, tmp_path: Path) -> None:
    before = demo_trainer(verifier, WAYS["ladder"])
    before.step()
    checkpoint.save(tmp_path, before)
    after = demo_trainer(verifier, WAYS["history"])
    checkpoint.resume(tmp_path, after)
    assert after.step().step == 2


@pytest.mark.parametrize(("first", "then"), [("isolated", "swarm"), ("swarm", "isolated")])
def test_arm_may_change_under_an_automatic_mix(verifier: Verifier, first: Arm, then: Arm) -> None:
    before, after = (
        make_trainer(verifier, config=TrainConfig(mix="auto", arm=arm)) for arm in (first, then)
    )
    before.step()
    after.load_state(before.state_dict())
    assert after.step().step == 2


def test_checkpoint_with_the_empty_mix_of_an_isolated_node_can_be_read(verifier: Verifier) -> None:
    trainer = make_trainer(verifier, config=TrainConfig(mix="auto"))
    trainer.load_state(trainer.state_dict() | {"mix": {"auto": {}}})
    assert trainer.step().step == 1


def test_resumed_run_runs_no_more_tokens_at_once_than_the_earlier_one(verifier: Verifier) -> None:
    before, after, roomy = (make_trainer(verifier) for _ in range(3))
    before.policy.update_budget.lower(0.25)
    before.policy.sampling_budget.share = 0.5
    state = before.state_dict()
    after.policy.sampling_budget.share = 0.125
    after.load_state(state)
    budgets = after.policy.update_budget, after.policy.sampling_budget
    assert [(budget.share, budget.ran_out) for budget in budgets] == [(0.25, True), (0.125, False)]
    assert after.step().notice is None
    del state["rooms"]  # like older checkpoints
    roomy.load_state(state)
    assert roomy.policy.update_budget.share == 1
    other = make_trainer(verifier, config=TrainConfig(micro_batch_tokens=1024))
    other.load_state(before.state_dict())
    assert other.policy.update_budget.share == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then", "is_reported"),
    [
        ("adamw", "adamw_8bit", True),
        ("adamw_8bit", "adamw", True),
        ("adamw_8bit", "adamw", False),
        ("adamw", "adamw", False),
    ],
)
def test_change_of_optimizer_starts_without_averages_and_is_reported(
    verifier: Verifier, tmp_path: Path, first: OptimizerKind, then: OptimizerKind, is_reported: bool
) -> None:
    write_tree(tmp_path, "trainer", trained(verifier, first).state_dict())
    state = read_tree(tmp_path, "trainer")
    if not is_reported:
        del state["optimizer_kind"]  # like older checkpoints
    after = demo_trainer(verifier, TrainConfig(optimizer=then))
    after.load_state(state)
    notices = [after.step().notice or "" for _ in range(2)]
    assert [f"was {first}, this run's is {then}" in notice for notice in notices] == [
        first != then,
        False,
    ]
