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
    """Return a row for every completion whose tokens count in the loss, weighted by `loss_type`.

    With `mask_truncated_completions` the truncated completions are left out. As in trl they still
    count in the group's mean and in the number of rows, but not in the number of tokens.
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

    The training set has `rows` rows, and `tokens` tokens count in the loss (`make_rows`). By
    `loss_type`, its loss is:

    - `grpo`: a mean over each row's tokens, then over rows (arXiv 2402.03300).
    - `dapo`: a mean over all tokens (arXiv 2503.14476). So is `bnpo`, which in trl is a mean over
      the tokens of each micro-batch: here micro-batches never change a loss.
    - `dr_grpo`: as `grpo`, but as if all rows had the maximum length, so that a token in a long row
      does not count less than one in a short row (arXiv 2503.20783).
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
    """Split rows into batches of at most `limit` tokens with padding, but at least one row each.

    The rows with the longest prompts come first. Rows with the same prompt, and rows of similar
    length, stay together, to minimise padding and repeated prompts. With `shared_prompts` a prompt
    counts once in each batch.
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
    """Return the denominator of the ratio as log-probs (B, T), and the correction of the loss.

    The correction is None if no row is external. The log-probs are `before` (B, T), this node's own
    before the update, without gradient. With importance `sender`, a row that has its sender's
    log-probs by token uses those instead. A row that has only their sum keeps `before`, and its
    loss is multiplied by `sequence_weight`. The ratio or the weight is then bounded, because nobody
    can check what a sender states. For all other external rows, `shaped_probability` replaces the
    ratio if `external_shaping` is `luffy`.
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
    """Return the factor of a row's loss: its likelihood at this node over that at its sender.

    `log_ratio` is the logarithm of this ratio. With `sequence_importance` `truncate`, a ratio above
    `importance_cap` becomes the cap; with `mask`, a ratio outside [1 / cap, cap] becomes 0. trl
    does the same for completions from vLLM (`vllm_importance_sampling_mode`). With
    `importance_sampling_level` `sequence`, the ratio is first replaced by its geometric mean over
    the row's `length` tokens (GSPO, arXiv 2507.18071, equation 7).
    """
    if config.importance_sampling_level == "sequence":
        log_ratio = log_ratio / length
    weight = log_ratio.exp()
    if config.sequence_importance == "truncate":
        return weight.clamp(max=config.importance_cap)
    outside = (weight > config.importance_cap) | (weight < 1 / config.importance_cap)
    return weight.masked_fill(outside, 0.0)
