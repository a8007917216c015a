"""Before training: how much memory it takes, and how many tokens fit into what is free.

Estimates, meant to begin near what works; `model.room` mends them when memory runs out after all.
"""

import logging
from dataclasses import dataclass

import psutil
import torch
from transformers import PreTrainedModel

from node_client.errors import MemoryExhaustedError
from node_client.model.container import left_in_container
from node_client.model.memory_limit import limited_free_bytes
from node_client.model.scoring import LOGITS_AT_ONCE

# What other programs, fragments and the estimate's error may take of the free memory.
_USABLE = 0.8
_FLOAT_BYTES = 4
# Logits, their gradient, and a copy while both are made, of one portion.
_LOGIT_BYTES = 3 * _FLOAT_BYTES * LOGITS_AT_ONCE


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shape:
    """The sizes of a model that decide what its training takes."""

    layers: int
    hidden: int
    intermediate: int
    parameters: int
    trainable: int


def share_at_start(
    model: PreTrainedModel,
    *,
    tokens: int,
    state_bytes: int,
    checkpointed: bool,
    halved: bool,
    copied: bool,
) -> float:
    """Return the share of so many tokens to begin with; says in the log when it is not all.

    `halved` tells that products are made in 16 bits, `copied` that it takes a copy of the weights.
    """
    shape, free = shape_of(model), free_bytes(model.device)
    lasting = lasting_bytes(shape, state_bytes=state_bytes, copied=copied)
    per_token = token_bytes(shape, checkpointed=checkpointed, halved=halved)
    share = share_that_fits(tokens, free=free, lasting=lasting, per_token=per_token)
    if lasting > free:
        log.warning(
            "Training takes about %.1f GB besides the model, and %.1f GB are free. If it fails: "
            "close other programs, or begin anew (--fresh) with adapters (lora_r = 16) or with a "
            "smaller model.",
            *(lasting / 1e9, free / 1e9),
        )
    elif share < 1:
        log.info("%d tokens are trained on at once, by free memory", max(1, int(share * tokens)))
    return share


def check_memory(name: str, weights: int, *, device: torch.device) -> None:
    """Check that a model's weights, of so many bytes, fit. Raises MemoryExhaustedError."""
    free = free_bytes(device)
    if weights > free:
        raise MemoryExhaustedError(
            f"The model {name} is too large: its weights take {weights / 1e9:.1f} GB on {device}, "
            f"where {free / 1e9:.1f} GB are free.",
            fix="Choose a smaller --model, close other programs, or use another --device. "
            "Training takes more besides the weights.",
        )


def shape_of(model: PreTrainedModel) -> Shape:
    """Read a model's shape; what its configuration does not tell is taken as usual."""
    config = model.config.get_text_config()
    hidden: int = config.hidden_size
    return Shape(
        layers=config.num_hidden_layers,
        hidden=hidden,
        intermediate=getattr(config, "intermediate_size", None) or 4 * hidden,
        parameters=sum(each.numel() for each in model.parameters()),
        trainable=sum(each.numel() for each in model.parameters() if each.requires_grad),
    )


def lasting_bytes(shape: Shape, *, state_bytes: int, copied: bool) -> int:
    """Return what stays allocated besides the weights: gradients, optimizer, a copy for sampling.

    `state_bytes` is what the optimizer keeps of each trained parameter; a copy has two bytes each.
    """
    return shape.trainable * (_FLOAT_BYTES + state_bytes) + 2 * shape.parameters * copied


def token_bytes(shape: Shape, *, checkpointed: bool, halved: bool) -> int:
    """Return what the activations of one token take until the backward pass.

    A layer keeps about eight vectors of the hidden size (norms, queries to output, residuals) and
    five of the intermediate one; with checkpointing its input, and one layer at once the rest.
    """
    size = 2 if halved else _FLOAT_BYTES
    inside = size * (8 * shape.hidden + 5 * shape.intermediate)
    if checkpointed:
        return shape.layers * shape.hidden * _FLOAT_BYTES + inside
    return shape.layers * inside


def needed_bytes(shape: Shape, *, tokens: int, state_bytes: int, halved: bool) -> int:
    """Return the free memory that a model's training needs with so many tokens at once.

    The inverse of `share_that_fits`, with the float32 weights, which are not loaded yet.
    """
    lasting = lasting_bytes(shape, state_bytes=state_bytes, copied=False)
    activations = tokens * token_bytes(shape, checkpointed=False, halved=halved)
    return _FLOAT_BYTES * shape.parameters + int((lasting + _LOGIT_BYTES + activations) / _USABLE)


def share_that_fits(tokens: int, *, free: int, lasting: int, per_token: int) -> float:
    """Return 1, or the largest of 1/2, 1/4, … of so many tokens that fits into the free bytes.

    Halves, so that two runs on one machine hardly ever differ. At least one token is tried.
    """
    fitting = (_USABLE * free - lasting - _LOGIT_BYTES) / per_token
    share = 1.0
    while share * tokens > max(1.0, fitting):
        share /= 2
    return share


def free_bytes(device: torch.device) -> int:
    """Return how much memory a device has left, within the limits of owner and container."""
    if device.type == "cuda":
        return limited_free_bytes(device)
    free = int(psutil.virtual_memory().available)  # macOS shares it with its GPU
    left = left_in_container()
    return free if left is None else min(free, left)
