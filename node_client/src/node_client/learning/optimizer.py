"""What a policy needs before it is trained: adapters, a reference, an optimizer, a loss scale."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from node_client.errors import SettingsError
from node_client.learning.adamw import HalvesAdamW
from node_client.learning.states import make_states_first
from node_client.model.policy import Policy
from node_client.settings.choices import OptimizerKind
from node_client.settings.train_config import TrainConfig, learning_rate_for

# Tokenizer, configuration and notes beside the weights.
_NOTES_BYTES = 1 << 20


def checkpoint_bytes(policy: Policy, config: TrainConfig) -> int:
    """Return what a checkpoint takes on a disk: float32 weights and the optimizer's state.

    Of adapters, which are small and not made yet, only the files around them count.
    """
    if config.lora_r:
        return _NOTES_BYTES
    return policy.parameters * (4 + _state_bytes(config)) + _NOTES_BYTES


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
    policy.make_room(config.micro_batch_tokens, state_bytes=_state_bytes(config))
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


def resume_optimizer(
    optimizer: torch.optim.Optimizer, state: Mapping[str, Any], *, kind: OptimizerKind
) -> str | None:
    """Take the optimizer's part of a trainer's state over, or return why it begins afresh.

    One kind cannot read what another kept of the gradients.
    """
    saved = state.get("optimizer_kind") or _kind_by_names(state["optimizer"])
    if saved != kind:
        return (
            f"The checkpoint's optimizer was {saved}, this run's is {kind}: it begins without the "
            "averages of earlier gradients. All else goes on."
        )
    rate = optimizer.param_groups[0]["lr"]
    optimizer.load_state_dict(state["optimizer"])
    # The rate is a setting of this run, not of the one that wrote the checkpoint.
    optimizer.param_groups[0]["lr"] = rate
    return None


def _kind_by_names(state: Mapping[str, Any]) -> str:
    """Return the kind of a state that was written when kinds were not, by torch's names."""
    is_torch = all("exp_avg" in values for values in state["state"].values())
    return "adamw" if is_torch else "adamw_8bit"


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
    optimizer = make(policy.trainable(), lr=rate, weight_decay=0.0)
    make_states_first(optimizer)
    return optimizer


def _state_bytes(config: TrainConfig) -> int:
    """Return what the optimizer keeps of each trained parameter."""
    return 2 if config.optimizer == "adamw_8bit" else 8
