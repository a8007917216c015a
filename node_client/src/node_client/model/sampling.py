"""Sampling completions from a causal language model, each prompt run once for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from node_client.model.decoder import Decoder
from node_client.model.padding import pad_left, positions_of

# Rows that have ended run along until there are so many of them: to drop them copies the cache.
WORTH_DROPPING = 0.25


@dataclass(frozen=True)
class Sampling:
    """How to sample: temperature 0 is greedy, and `top_p` 1 takes every token into account."""

    completions: int
    max_new_tokens: int
    temperature: float
    top_p: float = 1.0
    generator: torch.Generator | None = None


class Steps(Protocol):
    """Runs some rows on, each by one token at once."""

    def step(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) behind the next token (B,) of each row."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only (a tensor of indices)."""


class ModelSteps:
    """Steps of any causal language model, with the cache that its prompts left."""

    def __init__(self, model: nn.Module, prefilled: Any, attention: Tensor, *, copies: int) -> None:
        self._model = model
        self._cache = prefilled
        self._cache.batch_repeat_interleave(copies)
        self._attention = attention.repeat_interleave(copies, dim=0)
        self._position = self._attention.sum(dim=1, keepdim=True) - 1

    def step(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) behind the next token (B,) of each row."""
        self._attention = torch.cat([self._attention, tokens.new_ones(len(tokens), 1)], dim=1)
        self._position = self._position + 1
        output = self._model(
            input_ids=tokens.unsqueeze(1),
            attention_mask=self._attention,
            position_ids=self._position,
            past_key_values=self._cache,
            use_cache=True,
        )
        return cast(Tensor, output.logits[:, -1])

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only (a tensor of indices)."""
        self._cache.batch_select_indices(rows)
        self._attention = self._attention[rows]
        self._position = self._position[rows]


def sample_completions(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    *,
    sampling: Sampling,
    eos_ids: Tensor,
    pad_id: int,
    decoder: Decoder | None = None,
) -> tuple[Tensor, Tensor]:
    """Return sampled tokens (prompts * completions, at most max_new_tokens), padded after EOS.

    With them come the log-probs that they were drawn with, of the same shape and 0 after EOS. Each
    prompt runs through the model once; its key-value cache is then repeated. A decoder of the
    model, if there is one, does the rest.
    """
    copies, most = sampling.completions, sampling.max_new_tokens
    ids, attention = pad_left(prompts, pad=pad_id, device=eos_ids.device)
    output = model(
        input_ids=ids,
        attention_mask=attention,
        position_ids=positions_of(attention),
        use_cache=True,
        logits_to_keep=1,
    )
    logits = output.logits[:, -1].repeat_interleave(copies, dim=0)  # (B, V)
    steps: Steps
    if decoder is None:
        steps = ModelSteps(model, output.past_key_values, attention, copies=copies)
    else:
        decoder.start(output.past_key_values, attention, copies=copies, steps=most)
        steps = decoder
    del output  # the logits and the prompts' cache are not needed twice
    return _draw(steps, logits, sampling=sampling, eos_ids=eos_ids, pad_id=pad_id)


def _draw(
    steps: Steps, logits: Tensor, *, sampling: Sampling, eos_ids: Tensor, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Return tokens and log-probs (B, T), from the first logits (B, V) on."""
    most = sampling.max_new_tokens
    tokens = torch.full((len(logits), most), pad_id, device=logits.device)
    logprobs = torch.zeros(len(logits), most, device=logits.device)
    carried = torch.arange(len(logits), device=logits.device)  # the rows that still run
    finished = torch.zeros_like(carried, dtype=torch.bool)  # among these
    for place in range(most):
        token, logprob = sample_tokens(logits, sampling=sampling)  # (B,), (B,)
        tokens[carried, place] = token.masked_fill(finished, pad_id)
        logprobs[carried, place] = logprob.masked_fill(finished, 0.0)
        finished |= torch.isin(token, eos_ids)
        done = int(finished.sum())
        if done == len(carried) or place + 1 == most:
            break
        if done > len(carried) * WORTH_DROPPING:
            going = (~finished).nonzero().squeeze(1)
            steps.keep(going)
            carried, token, finished = carried[going], token[going], finished[going]
        logits = steps.step(token)
    return tokens[:, : place + 1], logprobs[:, : place + 1]


def sample_tokens(logits: Tensor, *, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """Return one token (B,) for each row of logits (B, V), and its log-prob (B,).

    `top_p` keeps the smallest set of tokens that holds this much probability (nucleus sampling,
    arXiv 1904.09751). The log-prob is that of the distribution drawn from: at this temperature,
    within the nucleus, and 0 (certain) where it is greedy.
    """
    if sampling.temperature == 0:
        token = logits.argmax(dim=1)
        return token, torch.zeros_like(token, dtype=torch.float32)
    probabilities = softmax(logits.float() / sampling.temperature, dim=1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(dim=1, descending=True)
        # A token stays while the ones before it hold less than top_p: the first always stays.
        ordered[ordered.cumsum(dim=1) - ordered >= sampling.top_p] = 0
        ordered /= ordered.sum(dim=1, keepdim=True)
        probabilities = torch.zeros_like(probabilities).scatter(1, order, ordered)
    # By the inverse of the distribution function: torch.multinomial draws a number for each token.
    summed = probabilities.cumsum(dim=1, dtype=_finest(logits.device))
    chance = torch.rand(
        len(summed), 1, dtype=summed.dtype, device=summed.device, generator=sampling.generator
    )
    total = summed[:, -1:].contiguous()
    drawn = torch.searchsorted(summed, chance * total, right=True)  # (B, 1)
    # Rounding may reach the very end, behind the last token that has any probability.
    drawn = torch.minimum(drawn, torch.searchsorted(summed, total))
    return drawn.squeeze(1), probabilities.gather(1, drawn).squeeze(1).log()


def _finest(device: torch.device) -> torch.dtype:
    """Return the type to add probabilities up in; Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64
