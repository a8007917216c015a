"""Loss settings that contradict mathematics or each other are refused with a reason."""

import pytest

from node_client.errors import SettingsError
from node_client.settings.objective import check_objective
from node_client.settings.train_config import TrainConfig


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (TrainConfig(importance_sampling_level="sequence"), "mean over sequences"),
        (TrainConfig(importance="none", num_iterations=2), "does not correct"),
        (TrainConfig(importance="sender", importance_cap=1.0), "within the clip range"),
        (TrainConfig(delta=1.28), "within the clip range"),
    ],
)
def test_contradictory_settings_are_refused(config: TrainConfig, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason) as refusal:
        check_objective(config)
    assert refusal.value.fix


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(),
        TrainConfig(epsilon_high=2.5),
        TrainConfig(loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4),
        TrainConfig(loss_type="dr_grpo", scale_rewards="none", beta=0.001, delta=4.0),
    ],
)
def test_published_settings_are_accepted(config: TrainConfig) -> None:
    check_objective(config)
