"""One update of the policy on one training set."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from node_client.learning.grpo import Loss, clipped_loss, group_advantages
from node_client.learning.micro_batches import split_rows
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.stopwatch import Stopwatch
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig


@dataclass(frozen=True)
class Row:
    """One completion to train on, with its advantage over its group."""

    prompt: list[int]
    completion: list[int]
    advantage: float


@dataclass(frozen=True)
class UpdateReport:
    """What an update did; `clip_ratio` is the share of tokens whose gradient was clipped away."""

    loss: float
    grad_norm: float
    clip_ratio: float


def update_policy(
    groups: Sequence[TrainingGroup],
    *,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    watch: Stopwatch,
) -> UpdateReport:
    """Make `num_iterations` optimizer steps on the groups and report on the last one.

    The loss is the mean over all completion tokens. Rows without advantage count as tokens there,
    but they have no gradient and are not run. If no row has one, the policy stays as it is.
    """
    rows = make_rows(groups, config=config)
    token_count = sum(len(row.completion) for row in rows)
    batches = list(
        split_rows(
            [row for row in rows if row.advantage],
            limit=config.micro_batch_tokens,
            shared_prompts=policy.shares_prompts,
        )
    )
    if not batches:
        return UpdateReport(loss=0.0, grad_norm=0.0, clip_ratio=0.0)
    old = _old_logprobs(batches, policy=policy, config=config, watch=watch)
    for _ in range(config.num_iterations):
        losses = [
            _accumulate(
                batch,
                old_logprobs,
                token_count=token_count,
                policy=policy,
                config=config,
                watch=watch,
            )
            for batch, old_logprobs in zip(batches, old, strict=True)
        ]
        with watch.measure("optimizer"):
            norm = torch.nn.utils.clip_grad_norm_(policy.trainable(), config.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return UpdateReport(
        loss=sum(loss.value.item() for loss in losses),
        grad_norm=norm.item(),
        clip_ratio=sum(loss.clip_low + loss.clip_high for loss in losses) / token_count,
    )


def make_rows(groups: Sequence[TrainingGroup], *, config: TrainConfig) -> list[Row]:
    """Return every completion that counts in the loss, with its advantage.

    Truncated ones keep their part in the group's mean even where they are left out of the loss.
    """
    rows = []
    for group in groups:
        advantages = group_advantages(
            torch.tensor(group.rewards), scale_rewards=config.scale_rewards
        )
        for completion, advantage, truncated in zip(
            group.completions, advantages.tolist(), group.truncated, strict=True
        ):
            if not (truncated and config.mask_truncated_completions):
                rows.append(Row(group.prompt, completion, advantage))
    return rows


def _old_logprobs(
    batches: Sequence[list[Row]], *, policy: Policy, config: TrainConfig, watch: Stopwatch
) -> list[Tensor | None]:
    """Return the log-probs (B, T) of each batch before the update.

    None where one pass is made: the pass's own values, detached, are the same at half the cost.
    """
    if config.num_iterations == 1:
        return [None] * len(batches)
    with torch.no_grad(), watch.measure("forward"):
        return [_run(batch, policy=policy, config=config)[0] for batch in batches]


def _accumulate(
    batch: Sequence[Row],
    old_logprobs: Tensor | None,
    *,
    token_count: int,
    policy: Policy,
    config: TrainConfig,
    watch: Stopwatch,
) -> Loss:
    """Add the gradient of one micro-batch to the parameters'."""
    with watch.measure("forward"):
        logprobs, mask = _run(batch, policy=policy, config=config)
        loss = clipped_loss(
            logprobs=logprobs,
            old_logprobs=logprobs.detach() if old_logprobs is None else old_logprobs,
            advantages=torch.tensor([row.advantage for row in batch], device=logprobs.device),
            mask=mask,
            epsilon=config.epsilon,
            epsilon_high=config.epsilon_high,
            token_count=token_count,
        )
    with watch.measure("backward"):
        loss.value.backward()  # type: ignore[no-untyped-call]
    return loss


def _run(batch: Sequence[Row], *, policy: Policy, config: TrainConfig) -> tuple[Tensor, Tensor]:
    return policy.logprobs(
        [row.prompt for row in batch],
        [row.completion for row in batch],
        # The distribution that was sampled from is the one whose likelihood is changed.
        temperature=config.temperature or 1.0,
    )
