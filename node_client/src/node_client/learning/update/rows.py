"""Rows: the completions of a training set with their advantages and weights in the loss.

Also how rows are grouped into micro-batches, and how rows of other policies are corrected.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from node_client.learning.rollouts import SenderLogprobs, TrainingGroup
from node_client.learning.update.losses import Correction, group_advantages
from node_client.settings.train_config import TrainConfig


@dataclass(frozen=True)
class TrainingRow:
    """One completion to train on: its advantage, and the weight of each of its tokens in the loss.

    `sender` has the log-probs that came with an external completion.
    """

    prompt: list[int]
    completion: list[int]
    advantage: float
    weight: float
    external: bool = False
    sender: SenderLogprobs | None = None


def make_rows(groups: Sequence[TrainingGroup], *, config: TrainConfig) -> list[TrainingRow]:
    """Return a row for every completion whose tokens count in the loss.

    The weight of a row is 1 / `divisor`, which depends on the setting `loss_type`. With
    `mask_truncated_completions`, truncated completions get no row, and their tokens do not count in
    the divisor. As in trl, these completions still count in the advantages of their group, and as
    rows in the divisor.
    """
    advantages = group_advantages(
        [group.rewards for group in groups], scale_rewards=config.scale_rewards
    )
    counted = [
        (group, place, advantage)
        for group, of_group in zip(groups, advantages, strict=True)
        for place, advantage in enumerate(of_group)
        if not (group.truncated[place] and config.mask_truncated_completions)
    ]
    rows = sum(len(group.completions) for group in groups)
    tokens = sum(len(group.completions[place]) for group, place, _ in counted)
    return [
        TrainingRow(
            group.prompt,
            group.completions[place],
            advantage,
            weight=1
            / divisor(config, rows=rows, tokens=tokens, length=len(group.completions[place])),
            external=group.external,
            sender=group.sender_logprobs[place] if group.sender_logprobs else None,
        )
        for group, place, advantage in counted
    ]


def divisor(config: TrainConfig, *, rows: int, tokens: int, length: int) -> int:
    """Return the divisor of the loss of each token in a row of `length` tokens.

    The training set has `rows` rows, and `tokens` of its tokens count in the loss (`make_rows`).
    The setting `loss_type` determines the loss of the training set:

    - `grpo`: the mean over each row's tokens, then the mean over rows (arXiv 2402.03300).
    - `dapo`: the mean over all tokens (arXiv 2503.14476).
    - `bnpo`: as `dapo`. In trl it is the mean over each micro-batch's tokens, but here
      micro-batches never change a loss.
    - `dr_grpo`: as `grpo`, but each row's sum over tokens is divided by the maximum length, so that
      a token in a long row does not count less than one in a short row (arXiv 2503.20783).
    """
    if config.loss_type == "grpo":
        return rows * length
    if config.loss_type == "dr_grpo":
        assert config.max_completion_length is not None  # set by the trainer
        return rows * config.max_completion_length
    return tokens


def split_rows(
    rows: Sequence[TrainingRow], *, limit: int, shared_prompts: bool = False
) -> Iterator[list[TrainingRow]]:
    """Yield batches of at most `limit` tokens, padding included; a longer row is a batch alone.

    The rows with the longest prompts come first. Rows with the same prompt, and rows of similar
    length, stay together, to minimise padding and repeated prompts. If `shared_prompts` is true, a
    prompt counts once in each batch.
    """
    batch: list[TrainingRow] = []
    prompts = completion_width = 0
    for row in sorted(rows, key=lambda row: (-len(row.prompt), row.prompt, -len(row.completion))):
        is_new = not (shared_prompts and batch and row.prompt == batch[-1].prompt)
        width = max(completion_width, len(row.completion))
        prompt_width = len(batch[0].prompt if batch else row.prompt)
        tokens = (prompts + is_new) * prompt_width + (len(batch) + 1) * width
        if batch and tokens > limit:
            yield batch
            batch, prompts, is_new, width = [], 0, True, len(row.completion)
        batch.append(row)
        prompts += is_new
        completion_width = width
    if batch:
        yield batch


def denominators(
    rows: Sequence[TrainingRow], *, before: Tensor, config: TrainConfig
) -> tuple[Tensor, Correction | None]:
    """Return the denominators of the importance ratio, as log-probs (B, T), and the correction.

    The correction of the loss is None if no row is external. The denominators are `before` (B, T),
    this node's log-probs before the update, without gradient.

    If `importance` is `sender`, rows that came with log-probs of their sender are treated
    differently:

    - If a row has a log-prob for each token, these are its denominators, and its ratio is at most
      `importance_cap`.
    - If a row has only the sum of the log-probs, its denominators are `before`, and its loss is
      multiplied by `sequence_weight`, which is bounded too.

    The bounds are needed because nobody can check what a sender states.

    If `external_shaping` is `luffy`, `shaped_probability` replaces the ratio of each external row
    for which no log-probs of its sender are used.
    """
    if not any(row.external for row in rows):
        return before, None
    old = before.clone()
    correction = Correction(
        cap=before.new_full((len(rows),), torch.inf),
        weight=before.new_ones(len(rows)),
        shaped=torch.zeros(len(rows), dtype=torch.bool, device=before.device),
    )
    for place, row in enumerate(rows):
        sender = row.sender if config.importance == "sender" else None
        if sender is None:
            correction.shaped[place] = row.external and config.external_shaping == "luffy"
        elif sender.tokens is not None:
            old[place, : len(sender.tokens)] = before.new_tensor(sender.tokens)
            correction.cap[place] = config.importance_cap
        else:
            own = before[place, : len(row.completion)]
            correction.weight[place] = sequence_weight(
                own.sum() - sender.total, length=len(row.completion), config=config
            )
    return old, correction


def sequence_weight(log_ratio: Tensor, *, length: int, config: TrainConfig) -> Tensor:
    """Return the factor of a row's loss: a likelihood ratio, bounded by `importance_cap`.

    The ratio is the completion's likelihood at this node divided by its likelihood at the sender;
    `log_ratio` is its logarithm. If `sequence_importance` is `truncate`, a ratio above the cap
    becomes the cap; if it is `mask`, a ratio outside [1 / cap, cap] becomes 0. trl does the same
    for completions from vLLM (`vllm_importance_sampling_mode`). If `importance_sampling_level` is
    `sequence`, the ratio is first replaced by its geometric mean over the row's `length` tokens
    (GSPO, arXiv 2507.18071, equation 7).
    """
    if config.importance_sampling_level == "sequence":
        log_ratio = log_ratio / length
    weight = log_ratio.exp()
    if config.sequence_importance == "truncate":
        return weight.clamp(max=config.importance_cap)
    outside = (weight > config.importance_cap) | (weight < 1 / config.importance_cap)
    return weight.masked_fill(outside, 0.0)
