"""Checks that the settings of the loss do not contradict each other."""

from node_client.errors import SettingsError
from node_client.settings.train_config import TrainConfig


def check_objective(config: TrainConfig) -> None:
    """Raise SettingsError if settings of the loss contradict each other."""
    if config.importance_sampling_level == "sequence" and config.loss_type != "grpo":
        raise SettingsError(
            "A ratio for each sequence needs a mean over sequences (GSPO), but the loss "
            f"{config.loss_type} would count it once per token, long completions most.",
            fix="Set loss_type to grpo, or importance_sampling_level to token.",
        )
    if config.importance == "none" and config.num_iterations > 1:
        raise SettingsError(
            "From the second pass on the training set is off-policy, which the plain policy "
            "gradient (importance none) does not correct.",
            fix="Set num_iterations to 1, or importance to own.",
        )
    caps = {"delta": config.delta}
    if config.importance == "sender":
        caps["importance_cap"] = config.importance_cap
    for name, bound in caps.items():
        if bound is not None and bound <= 1 + config.epsilon_high:
            raise SettingsError(
                f"{name} = {bound:g} would limit ratios within the clip range, which ends at "
                f"{1 + config.epsilon_high:g}.",
                fix=f"Set {name} above 1 + epsilon_high, such as 4.",
            )
