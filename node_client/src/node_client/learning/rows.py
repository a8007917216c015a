"""Rows: the completions of a training set, with what each counts in the loss. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from node_client.learning.advantages import group_advantages
from node_client.learning.rollouts import SenderLogprobs, TrainingGroup
from node_client.settings.choices import LossType
from node_client.settings.train_config import TrainConfig


@dataclass(frozen=True)
class Row:
    """One completion to train on: its advantage, and what each of its tokens counts in the loss.

    `sender` is what the maker of an external one told about its likelihood.
    """

    prompt: list[int]
    completion: list[int]
    advantage: float
    weight: float
    external: bool = False
    sender: SenderLogprobs | None = None


def make_rows(
    groups: Sequence[TrainingGroup], *, config: TrainConfig, max_completion_length: int
) -> list[Row]:
    """Return every completion whose tokens count in the loss, weighted by `loss_type`.

    With `mask_truncated_completions` the truncated ones are left out. As in trl they keep their
    part in the group's mean and in the number of rows, but not in the number of tokens.
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
        Row(
            group.prompt,
            group.completions[place],
            advantage,
            weight=1
            / divisor(
                config.loss_type,
                rows=rows,
                tokens=tokens,
                length=len(group.completions[place]),
                max_completion_length=max_completion_length,
            ),
            external=group.external,
            sender=group.sender_logprobs[place] if group.sender_logprobs else None,
        )
        for group, place, advantage in counted
    ]


def divisor(
    loss_type: LossType, *, rows: int, tokens: int, length: int, max_completion_length: int
) -> int:
    """Return what a token's loss is divided by, in a set of so many rows and tokens in all.

    - `grpo`: a mean over each row's `length` tokens, then over rows (arXiv 2402.03300).
    - `dapo`: a mean over all tokens (arXiv 2503.14476). So is `bnpo`, which in trl is a mean over
      the tokens of each micro-batch: here micro-batches never change a loss.
    - `dr_grpo`: over rows of a constant length, so that long rows count more (arXiv 2503.20783).
    """
    if loss_type == "grpo":
        return rows * length
    if loss_type == "dr_grpo":
        return rows * max_completion_length
    return tokens
