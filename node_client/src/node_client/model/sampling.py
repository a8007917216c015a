"""Sampling completions from a causal language model, each prompt run once for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from node_client.model.padding import pad_left, positions_of

# How many tokens, prompts included, are generated at once: bounds the key-value cache's memory.
GENERATION_TOKENS = 32_768


@dataclass(frozen=True)
class Sampling:
    """How to sample: temperature 0 is greedy, and `top_p` 1 takes every token into account."""

    completions: int
    max_new_tokens: int
    temperature: float
    top_p: float = 1.0
    generator: torch.Generator | None = None


def sample_completions(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    *,
    sampling: Sampling,
    eos_ids: Tensor,
    pad_id: int,
) -> tuple[Tensor, Tensor]:
    """Return sampled tokens (prompts * completions, at most max_new_tokens), padded after EOS.

    With them come the log-probs that they were drawn with, of the same shape and with any value
    after EOS. Each prompt runs through the model once; its key-value cache is then repeated.
    """
    ids, attention = pad_left(prompts, pad=pad_id, device=eos_ids.device)
    position = positions_of(attention)
    output = model(
        input_ids=ids,
        attention_mask=attention,
        position_ids=position,
        use_cache=True,
        logits_to_keep=1,
    )
    cache = output.past_key_values
    cache.batch_repeat_interleave(sampling.completions)
    logits = _repeat(output.logits[:, -1], sampling.completions)  # (B, V)
    attention = _repeat(attention, sampling.completions)
    position = _repeat(position[:, -1:], sampling.completions)
    finished = torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
    columns: list[Tensor] = []
    drawn_with: list[Tensor] = []
    while True:
        token, logprob = sample_tokens(logits, sampling=sampling)  # (B,), (B,)
        drawn_with.append(logprob)
        columns.append(token.masked_fill(finished, pad_id))
        finished |= torch.isin(token, eos_ids)
        if len(columns) == sampling.max_new_tokens or bool(finished.all()):
            return torch.stack(columns, dim=1), torch.stack(drawn_with, dim=1)
        attention = torch.cat([attention, torch.ones_like(attention[:, :1])], dim=1)
        position = position + 1
        output = model(
            input_ids=columns[-1].unsqueeze(1),
            attention_mask=attention,
            position_ids=position,
            past_key_values=cache,
            use_cache=True,
        )
        logits = output.logits[:, -1]


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
    drawn = torch.multinomial(probabilities, 1, generator=sampling.generator)  # (B, 1)
    return drawn.squeeze(1), probabilities.gather(1, drawn).squeeze(1).log()


def split_prompts(prompts: Sequence[list[int]], *, sampling: Sampling) -> Iterator[list[list[int]]]:
    """Split prompts, in order, into batches of at most GENERATION_TOKENS (or one prompt)."""
    chunk: list[list[int]] = []
    longest = 0
    for prompt in prompts:
        longest = max(longest, len(prompt))
        rows = (len(chunk) + 1) * sampling.completions
        if chunk and rows * (longest + sampling.max_new_tokens) > GENERATION_TOKENS:
            yield chunk
            chunk, longest = [], len(prompt)
        chunk.append(prompt)
    if chunk:
        yield chunk


def _repeat(rows: Tensor, times: int) -> Tensor:
    return rows.repeat_interleave(times, dim=0)
