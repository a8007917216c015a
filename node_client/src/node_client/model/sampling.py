"""Sampling of completions in batches that fit into memory; a prompt runs once in each batch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax
from transformers import PreTrainedModel

from node_client.model.decoder import Decoder
from node_client.model.loading.contents import unusable
from node_client.model.memory.budget import MemoryBudget, release_memory
from node_client.model.padding import Rows, pad_left, positions_of
from swarm_protocol.messages import FinishReason

# Tokens, prompts included, that are generated at once: bounds the memory of the key-value cache.
GENERATION_TOKENS = 32_768
# Finished rows are dropped once they are more than this share: dropping them copies the cache.
MIN_FINISHED_SHARE = 0.25
# Types of models that accept `past_key_values`, but keep states of rows in other places too.
_HIDDEN_STATES = ("minimax", "recurrent_gemma")

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Sampling:
    """How to sample: `completions` per prompt, of at most `max_new_tokens` tokens each.

    Temperature 0 is greedy, and `top_p` 1 considers every token.
    """

    completions: int
    max_new_tokens: int
    temperature: float
    top_p: float = 1.0
    generator: torch.Generator | None = None


@dataclass(frozen=True)
class Generated:
    """One sampled completion; `token_ids` end with EOS if `finish_reason` is `stop`.

    `logprobs` has one value for each token, from the distribution that the token was drawn from.
    """

    text: str
    finish_reason: FinishReason
    token_ids: list[int]
    logprobs: list[float]


def sample_in_batches(
    prompts: Rows,
    *,
    sample: Callable[[Rows, Sampling], list[list[AnswerT]]],
    sampling: Sampling,
    budget: MemoryBudget,
    device: torch.device,
) -> list[list[AnswerT]]:
    """Return each prompt's answers, in the order of the prompts.

    `sample` is called with the prompts of each batch and a copy of `sampling`, whose `completions`
    may be smaller; it returns the answers to each prompt. When memory runs out, `budget` is lowered
    and batches are halved, down to one completion at a time. Raises MemoryExhaustedError if not
    even one completion fits.
    """
    answers: list[list[AnswerT]] = [[] for _ in prompts]
    place = 0
    while place < len(prompts):
        missing = sampling.completions - len(answers[place])
        batch, copies = next_batch(
            prompts[place:], missing=missing, sampling=sampling, budget=budget
        )
        try:
            sampled = sample(batch, replace(sampling, completions=copies))
        except (RuntimeError, MemoryError) as error:
            longest = max(map(len, batch)) + sampling.max_new_tokens
            tried = len(batch) * copies * longest / GENERATION_TOKENS
            budget.shrink(error, tried=tried, least=0.0)  # one completion is tried in any case
            if len(batch) == copies == 1:
                budget.lower(0.0)
        else:
            for known, new in zip(answers[place:], sampled, strict=False):
                known += new
            while place < len(prompts) and len(answers[place]) == sampling.completions:
                place += 1
            continue
        budget.check()
        release_memory(device)
    return answers


def next_batch(
    prompts: Rows, *, missing: int, sampling: Sampling, budget: MemoryBudget
) -> tuple[Rows, int]:
    """Return the prompts of the next batch, and how many completions to sample for each.

    Normally the batch has as many of the first prompts as fit with all their completions, but at
    least one prompt. `missing` is the number of completions that the first prompt still lacks. The
    batch has only the first prompt in two cases:

    - The first prompt has some completions already.
    - Memory has run out before, and the missing completions do not all fit.

    In these cases the batch has as many of the missing completions as fit, but at least one.
    """
    limit = budget.fit(GENERATION_TOKENS)
    fitting = max(1, limit // (len(prompts[0]) + sampling.max_new_tokens))
    if (budget.ran_out and fitting < missing) or missing < sampling.completions:
        return prompts[:1], min(fitting, missing)
    count, longest = 1, len(prompts[0])
    for prompt in prompts[1:]:
        longest = max(longest, len(prompt))
        if (count + 1) * sampling.completions * (longest + sampling.max_new_tokens) > limit:
            break
        count += 1
    return prompts[:count], sampling.completions


class ModelSteps:
    """Token-by-token generation with any causal language model, for a batch of rows.

    `prefilled` is the model's key-value cache after the G prompts; it is changed in place.
    `attention` (G, P) is 1 on the prompts' tokens. Each prompt gets `copies` rows. `Decoder` has
    the same methods `step` and `select_rows`.
    """

    def __init__(self, model: nn.Module, prefilled: Any, attention: Tensor, *, copies: int) -> None:
        self._model = model
        self._cache = prefilled
        # Layers with a recurrent state lack `batch_repeat_interleave` and `batch_select_indices`.
        places = torch.arange(len(attention), device=attention.device)
        self._cache.reorder_cache(places.repeat_interleave(copies))
        self._attention = attention.repeat_interleave(copies, dim=0)
        self._position = self._attention.sum(dim=1, keepdim=True) - 1

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token (B,) to each row; return the logits (B, V) of the next token."""
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

    def select_rows(self, rows: Tensor) -> None:
        """Keep only the rows with these indices, a tensor (K,), in this order."""
        self._cache.reorder_cache(rows)
        self._attention = self._attention[rows]
        self._position = self._position[rows]


def check_cache(model: PreTrainedModel, *, name: str) -> None:
    """Raise ModelUnavailableError if `ModelSteps` does not support the model's cache.

    `name` is the name or path that the user gave, for messages.
    """
    kind: str = model.config.model_type
    accepted = signature(model.forward).parameters
    if kind in _HIDDEN_STATES or "past_key_values" not in accepted:
        raise unusable(name, f"it is a {kind}, whose state cannot be shared between completions")


def sample_completions(
    model: nn.Module,
    prompts: Rows,
    *,
    sampling: Sampling,
    eos_ids: Tensor,
    pad_id: int,
    decoder: Decoder | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the sampled tokens (prompts * completions, T), padded after EOS, and their log-probs.

    T is at most `max_new_tokens`; a prompt's completions are consecutive rows. Log-probs have the
    same shape and are 0 after EOS. Each prompt runs through the model once; its key-value cache is
    then repeated. `decoder`, if given, generates the completions instead of the model.
    """
    copies, max_tokens = sampling.completions, sampling.max_new_tokens
    ids, attention = pad_left(prompts, pad=pad_id, device=eos_ids.device)
    output = model(
        input_ids=ids,
        attention_mask=attention,
        position_ids=positions_of(attention),
        use_cache=True,
        logits_to_keep=1,
    )
    logits = output.logits[:, -1].repeat_interleave(copies, dim=0)  # (B, V)
    steps: ModelSteps | Decoder
    if decoder is None:
        steps = ModelSteps(model, output.past_key_values, attention, copies=copies)
    else:
        decoder.start(output.past_key_values, attention, copies=copies, steps=max_tokens)
        steps = decoder
    del output  # the logits and the prompts' cache are not needed twice
    return _draw(steps, logits, sampling=sampling, eos_ids=eos_ids, pad_id=pad_id)


def _draw(
    steps: ModelSteps | Decoder, logits: Tensor, *, sampling: Sampling, eos_ids: Tensor, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Return sampled tokens and log-probs (B, T); `logits` (B, V) are those of the first token."""
    max_tokens = sampling.max_new_tokens
    tokens = torch.full((len(logits), max_tokens), pad_id, device=logits.device)
    logprobs = torch.zeros(len(logits), max_tokens, device=logits.device)
    running = torch.arange(len(logits), device=logits.device)  # the rows that are still computed
    finished = torch.zeros_like(running, dtype=torch.bool)  # among these
    for place in range(max_tokens):
        token, logprob = sample_tokens(logits, sampling=sampling)  # (B,), (B,)
        tokens[running, place] = token.masked_fill(finished, pad_id)
        logprobs[running, place] = logprob.masked_fill(finished, 0.0)
        finished |= torch.isin(token, eos_ids)
        done = int(finished.sum())
        if done == len(running) or place + 1 == max_tokens:
            break
        if done > len(running) * MIN_FINISHED_SHARE:
            kept = (~finished).nonzero().squeeze(1)
            steps.select_rows(kept)
            running, token, finished = running[kept], token[kept], finished[kept]
        logits = steps.step(token)
    return tokens[:, : place + 1], logprobs[:, : place + 1]


def sample_tokens(logits: Tensor, *, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """Return one token (B,) for each row of logits (B, V), and its log-prob (B,).

    `top_p` keeps the smallest set of the likeliest tokens with at least this total probability
    (nucleus sampling, arXiv 1904.09751). The log-prob is from the distribution that the token was
    drawn from, after temperature and `top_p`. It is 0 for greedy sampling.
    """
    if sampling.temperature == 0:
        token = logits.argmax(dim=1)
        return token, torch.zeros_like(token, dtype=torch.float32)
    probabilities = softmax(logits.float() / sampling.temperature, dim=1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(dim=1, descending=True)
        # A token is kept while those before it hold less than top_p: the first is always kept.
        ordered[ordered.cumsum(dim=1) - ordered >= sampling.top_p] = 0
        ordered /= ordered.sum(dim=1, keepdim=True)
        probabilities = torch.zeros_like(probabilities).scatter(1, order, ordered)
    # Inverse transform sampling: torch.multinomial would draw a number for each token.
    # Apple's GPUs have no float64.
    dtype = torch.float32 if logits.device.type == "mps" else torch.float64
    summed = probabilities.cumsum(dim=1, dtype=dtype)
    uniform = torch.rand(
        len(summed), 1, dtype=summed.dtype, device=summed.device, generator=sampling.generator
    )
    total = summed[:, -1:].contiguous()
    drawn = torch.searchsorted(summed, uniform * total, right=True)  # (B, 1)
    # Rounding may reach the very end, behind the last token that has any probability.
    drawn = torch.minimum(drawn, torch.searchsorted(summed, total))
    return drawn.squeeze(1), probabilities.gather(1, drawn).squeeze(1).log()
