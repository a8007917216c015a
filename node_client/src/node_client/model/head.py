"""Log-probs of tokens from hidden states, without all logits in memory at once.

With a vocabulary of 152k the logits of 4096 tokens take 2.5 GB, and so does their gradient. Here
the logits are computed for one piece of the vocabulary at a time, discarded, and computed again in
the backward pass, which fills the head's gradient piece by piece (as in Cut Cross-Entropy,
arXiv 2411.09009).
"""

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

# Logits in memory at once.
PIECE = 2**22


def token_logprobs(
    head: nn.Linear, states: Tensor, tokens: Tensor, *, temperature: float
) -> Tensor:
    """Return the float32 log-prob (N,) of each token (N,) from its hidden states (N, H).

    Matrix products are computed in autocast's type if autocast is enabled.
    """
    dtype = head.weight.dtype
    if torch.is_autocast_enabled(states.device.type):
        dtype = torch.get_autocast_dtype(states.device.type)
    logprobs = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]
        states, head.weight, head.bias, tokens, temperature, dtype
    )
    return cast(Tensor, logprobs)


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        tokens: Tensor,
        temperature: float,
        dtype: torch.dtype,
    ) -> Tensor:
        ctx.temperature, ctx.dtype = temperature, dtype
        rows = torch.arange(len(tokens), device=tokens.device)
        total = states.new_full((len(tokens),), -torch.inf, dtype=torch.float32)
        chosen = torch.zeros_like(total)
        for piece in _pieces(len(tokens), len(weight)):
            logits = _logits(states, weight, bias, piece, temperature=temperature, dtype=dtype)
            total = torch.logaddexp(total, logits.logsumexp(dim=1))
            here, place = _places(tokens, piece)
            chosen = torch.where(here, logits[rows, place], chosen)
        ctx.save_for_backward(states, weight, bias, tokens, total)
        return chosen - total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, bias, tokens, total = ctx.saved_tensors
        rows = torch.arange(len(tokens), device=tokens.device)
        weight_gradient = torch.empty_like(weight) if ctx.needs_input_grad[1] else None
        bias_gradient = torch.empty_like(bias) if ctx.needs_input_grad[2] else None
        states_gradient = torch.zeros_like(states, dtype=torch.float32)
        scaled = (gradient / ctx.temperature).unsqueeze(1)  # (N, 1)
        cast_states = states.to(ctx.dtype)
        for piece in _pieces(len(tokens), len(weight)):
            logits = _logits(
                states, weight, bias, piece, temperature=ctx.temperature, dtype=ctx.dtype
            )
            pull = logits.sub_(total.unsqueeze(1)).exp_().mul_(-scaled)  # (N, v)
            here, place = _places(tokens, piece)
            pull[rows, place] += torch.where(here, scaled.squeeze(1), 0.0)
            if bias_gradient is not None:
                bias_gradient[piece] = pull.sum(dim=0)
            pull = pull.to(ctx.dtype)
            states_gradient += pull @ weight[piece].to(ctx.dtype)
            if weight_gradient is not None:
                weight_gradient[piece] = pull.t() @ cast_states
        return states_gradient.to(states.dtype), weight_gradient, bias_gradient, None, None, None


def _pieces(rows: int, vocabulary: int) -> Iterator[slice]:
    width = max(1, PIECE // max(1, rows))
    return (slice(start, start + width) for start in range(0, vocabulary, width))


def _logits(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    piece: slice,
    *,
    temperature: float,
    dtype: torch.dtype,
) -> Tensor:
    """Return the float32 logits (N, v) of a piece of the vocabulary, divided by `temperature`."""
    part = None if bias is None else bias[piece].to(dtype)
    logits = linear(states.to(dtype), weight[piece].to(dtype), part)
    return logits.float() / temperature


def _places(tokens: Tensor, piece: slice) -> tuple[Tensor, Tensor]:
    """Return a mask of the tokens (N,) that lie in `piece`, and each token's index in it (N,).

    `piece` is a slice of the vocabulary. The index is 0 for tokens outside of it.
    """
    here = (tokens >= piece.start) & (tokens < piece.stop)
    return here, torch.where(here, tokens - piece.start, 0)
