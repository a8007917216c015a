"""What a policy needs before it is trained: adapters, a reference, an optimizer, a loss scale."""

from collections.abc import Callable

import torch

from node_client.errors import SettingsError
from node_client.learning.adamw import HalvesAdamW
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig, learning_rate_for


def begin_training(policy: Policy, config: TrainConfig) -> torch.optim.Optimizer:
    """Set the policy up as configured, and return its optimizer.

    Call it before a checkpoint is loaded: the reference of a KL term is the model as it was given,
    so a resumed run has the same.
    """
    policy.set_precision(config.precision)
    is_8bit = config.optimizer == "adamw_8bit"
    if not (config.lora_r or is_8bit):
        policy.halve_weights()
    if config.lora_r:
        policy.add_adapters(
            rank=config.lora_r, alpha=config.lora_alpha, target_modules=config.lora_target_modules
        )
    if config.beta:
        policy.keep_reference()
    if config.gradient_checkpointing:
        policy.checkpoint_activations()
    policy.make_room(config.micro_batch_tokens, state_bytes=2 if is_8bit else 8)
    rate = learning_rate_for(config, parameters=policy.parameters)
    if is_8bit:
        return _adamw_8bit(policy, rate=rate)
    if policy.remainders:
        return HalvesAdamW(policy.trainable(), policy.remainders, lr=rate)
    return torch.optim.AdamW(
        policy.trainable(),
        lr=rate,
        weight_decay=0.0,
        fused=True,  # several times faster on a CPU too
    )


def make_scaler(policy: Policy, config: TrainConfig) -> torch.amp.GradScaler:
    """Return what scales the loss so that gradients in float16 do not vanish, or does nothing.

    It is mixed-precision training's dynamic loss scale (arXiv 1710.03740): a step whose gradients
    overflow is left out, and the next one is scaled less.
    """
    return torch.amp.GradScaler(policy.device.type, enabled=config.precision == "fp16")


def _adamw_8bit(policy: Policy, *, rate: float) -> torch.optim.Optimizer:
    """Return bitsandbytes' AdamW with states in 8 bits (Dettmers et al., arXiv 2110.02861)."""
    try:
        from bitsandbytes.optim.adamw import AdamW8bit
    except ImportError as problem:
        raise SettingsError(
            "The optimizer adamw_8bit needs bitsandbytes, which is not installed.",
            fix="pip install bitsandbytes, or leave the optimizer at adamw.",
        ) from problem
    make: Callable[..., torch.optim.Optimizer] = AdamW8bit
    return make(policy.trainable(), lr=rate, weight_decay=0.0)
