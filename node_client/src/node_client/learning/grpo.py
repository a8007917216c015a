"""GRPO on tensors (arXiv 2402.03300), with clip-higher and token mean (DAPO, arXiv 2503.14476).

Pure: no model, no I/O. Shapes: B rows (completions), T tokens, L completions of one question.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from node_client.settings.choices import ScaleRewards

# As in trl: keeps the division finite, and lets nearly equal rewards give small advantages.
STD_FLOOR = 1e-4


@dataclass(frozen=True)
class Loss:
    """The loss of some rows and what it did to their tokens.

    `clip_low` and `clip_high` are numbers of tokens whose gradient the clip cut off below and
    above, so that callers can add them up over several micro-batches.
    """

    value: Tensor
    clip_low: float
    clip_high: float


def group_advantages(rewards: Tensor, *, scale_rewards: ScaleRewards = "group") -> Tensor:
    """Return how much better each completion (..., L) did than the mean of its own group.

    With `group` the differences are divided by the group's standard deviation (Bessel-corrected,
    as in trl); with `none` they are left as they are (Dr. GRPO, arXiv 2503.20783).
    """
    centred = rewards - rewards.mean(dim=-1, keepdim=True)
    if scale_rewards == "none":
        return centred
    return centred / (rewards.std(dim=-1, keepdim=True) + STD_FLOOR)


def clipped_loss(
    *,
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    epsilon: float,
    epsilon_high: float,
    token_count: int,
) -> Loss:
    """Return the clipped policy-gradient loss of some rows of a batch.

    `logprobs`, `old_logprobs` and `mask` are (B, T), `advantages` (B,). `token_count` is the number
    of completion tokens in the whole batch, so that the micro-batches' losses add up to its token
    mean. The ratio may leave [1 - epsilon, 1 + epsilon_high] only where that lowers the objective.
    """
    # Padding is zeroed before exp, so that it can give neither inf nor NaN.
    ratio = torch.exp((logprobs - old_logprobs) * mask)  # (B, T)
    advantage = advantages.unsqueeze(1)  # (B, 1)
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    value = -(objective * mask).sum() / token_count
    with torch.no_grad():
        low = (ratio < 1 - epsilon) & (advantage < 0)
        high = (ratio > 1 + epsilon_high) & (advantage > 0)
        return Loss(
            value=value,
            clip_low=(low * mask).sum().item(),
            clip_high=(high * mask).sum().item(),
        )
