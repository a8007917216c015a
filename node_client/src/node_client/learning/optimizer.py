"""What a policy needs before it is trained."""

import torch

from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig, learning_rate_for


def begin_training(policy: Policy, config: TrainConfig) -> torch.optim.Optimizer:
    """Set the policy up as configured, and return its optimizer.

    Call it before a checkpoint is loaded: the reference of a KL term is the model as it was given,
    so a resumed run has the same.
    """
    policy.set_precision(config.precision)
    if config.beta:
        policy.keep_reference()
    return torch.optim.AdamW(
        policy.trainable(),
        lr=learning_rate_for(config, parameters=policy.parameters),
        weight_decay=0.0,
        fused=True,  # several times faster on a CPU too
    )
