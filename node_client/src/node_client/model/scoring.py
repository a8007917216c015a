"""Log-probs of completions; each prompt runs once for all completions that follow it.

A rollout's completions share their prompt, so running the prompt once for each completion would
repeat the same work (verl's prefix grouper avoids this too). A trial shows whether a model can
share prompts, and whether its head can be applied separately from its body.
"""

import logging
from dataclasses import dataclass
from inspect import signature
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from node_client.model.head import token_logprobs
from node_client.model.padding import Rows, pad_left, pad_right, positions_of

# Logits in memory at once: more are computed in portions, and again in the backward pass.
LOGITS_AT_ONCE = 2**24
# What a model may raise when it is called with arguments that it does not support.
_REFUSALS = (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError)
_TOLERANCE = 1e-4

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoringMode:
    """How log-probs are computed.

    `shared_prompts`: each distinct prompt runs once, with gradient, and all completions that follow
    it attend to its keys and values. `separate_head`: the head runs after the body, only where a
    completion's token is predicted, and on a limited number of logits at once.
    """

    shared_prompts: bool
    separate_head: bool


PLAIN = ScoringMode(shared_prompts=False, separate_head=False)
# From the fastest to the one that every causal language model supports.
MODES = (ScoringMode(True, True), ScoringMode(True, False), ScoringMode(False, True), PLAIN)


@dataclass(frozen=True)
class ScoringBatch:
    """A batch of B completions and their G prompts as tensors, on the model's device.

    `prompts` (G, P) are padded on the left, `completions` (B, T) on the right. `owners` (B,) is the
    index of each completion's prompt. If the mode shares prompts (`ScoringMode`), equal prompts
    are stored once; otherwise there is one prompt for each completion, so G is B. `prompt_mask` and
    `mask` are 1 on tokens.
    """

    prompts: Tensor
    prompt_mask: Tensor
    owners: Tensor
    completions: Tensor
    mask: Tensor


def make_scoring_batch(
    prompts: Rows, completions: Rows, *, pad_id: int, device: torch.device, mode: ScoringMode
) -> ScoringBatch:
    """Return the rows `prompts[i]` + `completions[i]` as tensors.

    Equal prompts are merged if the mode shares them.
    """
    unique = list(dict.fromkeys(map(tuple, prompts)))
    if mode.shared_prompts:
        places = {prompt: place for place, prompt in enumerate(unique)}
        owners = [places[tuple(prompt)] for prompt in prompts]
        prompts = unique
    else:
        owners = list(range(len(prompts)))
    prompt_ids, prompt_mask = pad_left(prompts, pad=pad_id, device=device)
    completion_ids, mask = pad_right(completions, pad=pad_id, device=device)
    return ScoringBatch(
        prompt_ids, prompt_mask, torch.tensor(owners, device=device), completion_ids, mask
    )


def score(
    model: PreTrainedModel, batch: ScoringBatch, *, temperature: float, mode: ScoringMode
) -> Tensor:
    """Return the log-probs (B, T) of the completions' tokens at the temperature, 0 on padding.

    The batch must have been made for the same mode.
    """
    real = batch.mask.bool()
    places = real.flatten().nonzero().squeeze(1)  # (N,)
    if mode.shared_prompts:
        outputs = _run_shared(model, batch, mode)
    else:
        outputs = _run_plain(model, batch, mode)
    chosen = _token_logprobs(
        model,
        outputs.flatten(0, 1).index_select(0, places),
        batch.completions.flatten().index_select(0, places),
        temperature=temperature,
        mode=mode,
    )
    return torch.zeros(real.shape, device=chosen.device).masked_scatter(real, chosen)


def find_scoring_mode(model: PreTrainedModel, *, pad_id: int) -> ScoringMode:
    """Return the fastest mode that gives the same log-probs as PLAIN on a small batch.

    Differences up to _TOLERANCE are allowed. Models with sliding windows, linear attention, capped
    logits and the like fail this test in some modes, so no list of architectures is needed. Logs
    what the model does not support.
    """
    tokens = [place % model.config.get_text_config().vocab_size for place in range(3, 24)]
    prompts = [tokens[:7], tokens[:7], tokens[7:12], tokens[7:12]]
    completions = [tokens[12:16], tokens[16:17], tokens[13:15], tokens[17:21]]

    @torch.no_grad()
    def scores_of(mode: ScoringMode) -> Tensor:
        batch = make_scoring_batch(
            prompts, completions, pad_id=pad_id, device=model.device, mode=mode
        )
        return score(model, batch, temperature=1.0, mode=mode)

    expected = scores_of(PLAIN)
    for mode in MODES[:-1]:
        try:
            difference = (scores_of(mode) - expected).abs().max().item()
        except _REFUSALS as refusal:
            log.info("%s cannot be run with %s: %s", model.config.model_type, mode, refusal)
            continue
        if difference <= _TOLERANCE:
            return mode
        log.info("%s with %s is off by %.1g", model.config.model_type, mode, difference)
    return PLAIN


def _run_plain(model: PreTrainedModel, batch: ScoringBatch, mode: ScoringMode) -> Tensor:
    """Return the outputs of the model that predict each completion token.

    These are hidden states (B, T, H) if `mode.separate_head` is true, else logits (B, T, V). Prompt
    and completion of each row run through the model together.
    """
    attention = torch.cat([batch.prompt_mask, batch.mask], dim=1)  # (B, P + T)
    length = batch.completions.shape[1]
    outputs, _ = _run(
        model,
        mode,
        last=length + 1,
        input_ids=torch.cat([batch.prompts, batch.completions], dim=1),
        attention_mask=attention,
        position_ids=positions_of(attention),
        use_cache=False,
    )
    return outputs[:, -length - 1 : -1]


def _run_shared(model: PreTrainedModel, batch: ScoringBatch, mode: ScoringMode) -> Tensor:
    """Return the outputs of the model that predict each completion token, as `_run_plain` does.

    Each prompt runs once, for all its completions.
    """
    first, cache = _run(
        model,
        mode,
        last=1,
        input_ids=batch.prompts,
        attention_mask=batch.prompt_mask,
        position_ids=positions_of(batch.prompt_mask),
        use_cache=True,
    )
    outputs = first[:, -1:].index_select(0, batch.owners)  # (B, 1, H or V)
    length = batch.completions.shape[1]
    if length == 1:
        return outputs
    _select_rows(cache, batch.owners)
    attention = torch.cat([batch.prompt_mask[batch.owners], batch.mask[:, :-1]], dim=1)
    rest, _ = _run(
        model,
        mode,
        last=length - 1,
        input_ids=batch.completions[:, :-1],
        attention_mask=attention,
        position_ids=positions_of(attention)[:, 1 - length :],
        past_key_values=cache,
        use_cache=True,
    )
    return torch.cat([outputs, rest], dim=1)


def _select_rows(cache: Cache, rows: Tensor) -> None:
    """Replace the cache's rows, in place, by those with the indices `rows`, which may repeat.

    The cache's own `batch_select_indices` would do the same, but its backward pass sums the rows'
    gradients in the order of the threads, so a resumed run would differ. Raises TypeError for
    layers without keys and values.
    """
    for layer in cache.layers:
        if not isinstance(layer, DynamicLayer) or layer.keys is None or layer.values is None:
            raise TypeError(f"{type(layer).__name__} has no keys and values")
        layer.keys = layer.keys.index_select(0, rows)
        layer.values = layer.values.index_select(0, rows)


def _run(
    model: PreTrainedModel, mode: ScoringMode, *, last: int, **inputs: Any
) -> tuple[Tensor, Any]:
    """Return the model's outputs at the last `last` positions or more, and its key-value cache.

    The outputs are hidden states if `mode.separate_head` is true, else logits. The cache may be
    None.
    """
    if mode.separate_head:
        output = model.base_model(**inputs)
        return output.last_hidden_state, output.get("past_key_values")
    accepted = signature(model.forward).parameters
    if "logits_to_keep" in accepted:
        inputs["logits_to_keep"] = last
    if "position_ids" not in accepted:
        del inputs["position_ids"]
    output = model(**inputs)
    return output.logits, output.get("past_key_values")


def _token_logprobs(
    model: PreTrainedModel,
    outputs: Tensor,
    tokens: Tensor,
    *,
    temperature: float,
    mode: ScoringMode,
) -> Tensor:
    """Return the log-prob (N,) of each token (N,) at the temperature.

    `outputs` are hidden states (N, H) if `mode.separate_head` is true, else logits (N, V).
    """

    def from_logits(logits: Tensor, tokens: Tensor) -> Tensor:
        return -cross_entropy(logits.float() / temperature, tokens, reduction="none")

    if not mode.separate_head:
        return from_logits(outputs, tokens)
    head: nn.Module = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    portion = max(1, LOGITS_AT_ONCE // model.config.get_text_config().vocab_size)
    if len(tokens) <= portion:
        return from_logits(head(outputs), tokens)
    if type(head) is nn.Linear:
        return token_logprobs(head, outputs, tokens, temperature=temperature)

    def from_states(states: Tensor, tokens: Tensor) -> Tensor:
        return from_logits(head(states), tokens)

    portions = [
        cast(Tensor, checkpoint(from_states, states, chosen, use_reentrant=False))
        for states, chosen in zip(
            torch.split(outputs, portion), torch.split(tokens, portion), strict=True
        )
    ]
    return torch.cat(portions)
