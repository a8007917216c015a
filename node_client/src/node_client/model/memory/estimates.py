"""Estimates of the memory that training takes, and of the tokens that fit into the free memory.

Training starts with the estimated number of tokens; `MemoryBudget` lowers it if memory runs out.
"""

import logging
from dataclasses import dataclass

import psutil
import torch
from transformers import PreTrainedModel

from node_client.errors import MemoryExhaustedError
from node_client.model.memory.limits import free_in_container, free_within_limit
from node_client.model.scoring import LOGITS_AT_ONCE

# The rest of the free memory is left to other programs, fragmentation and the estimate's error.
_USABLE = 0.8
_FLOAT_BYTES = 4
# Logits, their gradient, and a copy while both are made, of one portion.
_LOGIT_BYTES = 3 * _FLOAT_BYTES * LOGITS_AT_ONCE

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shape:
    """The sizes of a model that decide how much memory its training takes."""

    layers: int
    hidden: int
    intermediate: int
    parameters: int
    trainable: int


def initial_share(
    model: PreTrainedModel,
    *,
    tokens: int,
    state_bytes: int,
    checkpointed: bool,
    half_precision: bool,
    copied: bool,
) -> float:
    """Return the share of `tokens` that training first tries to process at once, in (0, 1].

    `state_bytes` is the size of the optimizer's state for each trained parameter. The other three
    arguments say how the model is used:

    - `checkpointed`: layers keep only their input for the backward pass.
    - `half_precision`: matrix products are computed in 16 bits.
    - `copied`: sampling keeps a 16-bit copy of the weights.

    If less memory is free than `resident_bytes` returns, logs a warning. If more is free but the
    share is below 1, logs the number of tokens that are processed at once.
    """
    shape, free = shape_of(model), free_bytes(model.device)
    resident = resident_bytes(shape, state_bytes=state_bytes, copied=copied)
    per_token = token_bytes(shape, checkpointed=checkpointed, half_precision=half_precision)
    share = fitting_share(tokens, free=free, resident=resident, per_token=per_token)
    if resident > free:
        log.warning(
            "Training takes about %.1f GB besides the model, and %.1f GB are free. If it fails: "
            "close other programs, or start over (--fresh) with adapters (lora_r = 16) or with a "
            "smaller model.",
            *(resident / 1e9, free / 1e9),
        )
    elif share < 1:
        log.info("%d tokens are trained on at once, by free memory", max(1, int(share * tokens)))
    return share


def check_memory(name: str, weights: int, *, device: torch.device) -> None:
    """Raise MemoryExhaustedError if a model's weights (bytes) do not fit on the device."""
    free = free_bytes(device)
    if weights > free:
        raise MemoryExhaustedError(
            f"The model {name} is too large: its weights take {weights / 1e9:.1f} GB on {device}, "
            f"where {free / 1e9:.1f} GB are free.",
            fix="Choose a smaller --model, close other programs, or use another --device. "
            "Training takes more besides the weights.",
        )


def shape_of(model: PreTrainedModel) -> Shape:
    """Return the sizes of a model.

    If its configuration has no intermediate size, 4 times the hidden size is assumed.
    """
    config = model.config.get_text_config()
    hidden: int = config.hidden_size
    return Shape(
        layers=config.num_hidden_layers,
        hidden=hidden,
        intermediate=getattr(config, "intermediate_size", None) or 4 * hidden,
        parameters=sum(each.numel() for each in model.parameters()),
        trainable=sum(each.numel() for each in model.parameters() if each.requires_grad),
    )


def resident_bytes(shape: Shape, *, state_bytes: int, copied: bool) -> int:
    """Return the bytes that stay allocated in training, besides the weights.

    They hold the gradients, the optimizer's state (`state_bytes` for each trained parameter) and,
    if `copied`, a 16-bit copy of the weights for sampling.
    """
    return shape.trainable * (_FLOAT_BYTES + state_bytes) + 2 * shape.parameters * copied


def token_bytes(shape: Shape, *, checkpointed: bool, half_precision: bool) -> int:
    """Return the bytes that one token's activations take until the backward pass.

    A layer keeps about eight vectors of the hidden size (norms, queries to output, residuals) and
    five of the intermediate size. With checkpointing, each layer keeps only its input, except the
    layer that the backward pass is computing again.
    """
    size = 2 if half_precision else _FLOAT_BYTES
    inside = size * (8 * shape.hidden + 5 * shape.intermediate)
    if checkpointed:
        return shape.layers * shape.hidden * _FLOAT_BYTES + inside
    return shape.layers * inside


def needed_bytes(shape: Shape, *, tokens: int, state_bytes: int, half_precision: bool) -> int:
    """Return the bytes that must be free, before the model is loaded, to train on `tokens` at once.

    They include the float32 weights. After the weights have been loaded, the remaining bytes are
    enough for `fitting_share` to return 1. The result is for training without checkpointing and
    without a 16-bit copy of the weights.
    """
    resident = resident_bytes(shape, state_bytes=state_bytes, copied=False)
    activations = tokens * token_bytes(shape, checkpointed=False, half_precision=half_precision)
    return _FLOAT_BYTES * shape.parameters + int((resident + _LOGIT_BYTES + activations) / _USABLE)


def fitting_share(tokens: int, *, free: int, resident: int, per_token: int) -> float:
    """Return the largest share of `tokens` among 1, 1/2, 1/4, … that fits into 80 % of `free`.

    `free`, `resident` and `per_token` are in bytes. Training takes `resident`, `per_token` for each
    token, and the memory for LOGITS_AT_ONCE logits. The share has only these few values, so that
    two runs on one machine nearly always get the same share, although `free` varies. If not even
    one token fits, returns the largest of these shares that amounts to one token or less.
    """
    fitting = (_USABLE * free - resident - _LOGIT_BYTES) / per_token
    share = 1.0
    while share * tokens > max(1.0, fitting):
        share /= 2
    return share


def free_bytes(device: torch.device) -> int:
    """Return how many bytes this process can still allocate on a device.

    On CUDA, the result respects the owner's memory limit for this process. On other devices, it is
    the machine's available memory within the memory limit of the container.
    """
    if device.type == "cuda":
        return free_within_limit(device)
    free = int(psutil.virtual_memory().available)  # macOS shares it with its GPU
    in_container = free_in_container()
    return free if in_container is None else min(free, in_container)
