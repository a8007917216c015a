"""Which settings of the loss contradict mathematics or each other, and why."""

from node_client.errors import SettingsError
from node_client.settings.train_config import TrainConfig


def check_objective(config: TrainConfig) -> None:
    """Check that the loss is one that the settings' names promise. Raises SettingsError."""
    if config.importance_sampling_level == "sequence" and config.loss_type != "grpo":
        raise SettingsError(
            "A ratio for each sequence goes with a mean over sequences (GSPO), but the loss "
            f"{config.loss_type} would count it once for each token, long completions most.",
            fix="Set loss_type to grpo, or importance_sampling_level to token.",
        )
    if config.delta is not None and config.delta <= 1 + config.epsilon_high:
        raise SettingsError(
            f"A delta of {config.delta} would cut into the clip, which ends at "
            f"{1 + config.epsilon_high:g}.",
            fix="Set delta above 1 + epsilon_high, such as 4, or leave it out.",
        )
