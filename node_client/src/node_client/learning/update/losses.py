"""GRPO's advantages and losses, computed from tensors alone, without a model; names are trl's.

Shapes: B rows (completions), T tokens. The weight of a row is the factor of each of its tokens in
the loss (`update.rows`), so every loss type is one weighted sum, and the losses of micro-batches
add up to the loss of the whole training set.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from node_client.learning.plugins import make_plugin
from node_client.settings.choices import ImportanceSamplingLevel, ScaleRewards

# As in trl: keeps the division finite, and makes the advantages of nearly equal rewards small.
STD_FLOOR = 1e-4
# LUFFY's gamma: a token of this probability is learned fastest.
SHAPING = 0.1


def group_advantages(
    rewards: Sequence[Sequence[float]], *, scale_rewards: ScaleRewards
) -> list[list[float]]:
    """Return the advantages of all groups of a set: each reward minus the mean of its own group.

    `scale_rewards` names the number by which this difference is divided:

    - `group`: the standard deviation of the group's rewards (GRPO, arXiv 2402.03300).
    - `batch`: the standard deviation of all rewards of the set (arXiv 2508.08221).
    - `none`: 1 (Dr. GRPO, arXiv 2503.20783).

    As in trl, standard deviations are Bessel-corrected, and STD_FLOOR is added to them. Groups may
    differ in size; each has at least two completions.
    """
    groups = [torch.tensor(group, dtype=torch.float64) for group in rewards]
    flat = torch.tensor([*chain(*rewards)], dtype=torch.float64)
    advantages = []
    for group in groups:
        # Equal rewards give exactly zero: their mean may differ from them in the last bit.
        centred = group - (group.mean() if group.max() > group.min() else group[0])
        if scale_rewards != "none":
            deviation = (flat if scale_rewards == "batch" else group).std()
            centred = centred / (deviation + STD_FLOOR)
        advantages.append(centred.tolist())
    return advantages


@dataclass(frozen=True)
class Objective:
    """The settings of a loss, named as in `TrainConfig`; `level` is `importance_sampling_level`."""

    epsilon: float = 0.2
    epsilon_high: float = 0.28
    delta: float | None = None
    beta: float = 0.0
    level: ImportanceSamplingLevel = "token"


@dataclass(frozen=True)
class Correction:
    """How the loss of rows from other policies is corrected; each field is (B,).

    `cap` is the upper bound of a row's ratio (infinity: no bound). The other fields do not affect
    the KL term: `weight` is a factor of a row's loss, and `shaped` is true if `shaped_probability`
    replaces the ratio.
    """

    cap: Tensor
    weight: Tensor
    shaped: Tensor


@dataclass(frozen=True)
class Tokens:
    """The tokens of some rows: everything that a loss depends on.

    `logprobs`, `old_logprobs` (the ratio's denominator), `mask` (1 on tokens, 0 on padding) and
    `reference_logprobs` (for the KL term) are (B, T); `advantages` and `weights` are (B,).
    """

    logprobs: Tensor
    old_logprobs: Tensor
    mask: Tensor
    advantages: Tensor
    weights: Tensor
    reference_logprobs: Tensor | None = None
    correction: Correction | None = None


@dataclass(frozen=True)
class Loss:
    """The loss of some rows, with statistics of their tokens.

    `clip_low` and `clip_high` are the numbers of tokens that have no policy gradient because the
    ratio was below the lower bound or above an upper one. `kl` is the sum of the tokens' KL
    estimates. Callers can add up each of the four values over micro-batches.
    """

    value: Tensor
    clip_low: float
    clip_high: float
    kl: float = 0.0


class PolicyLoss(ABC):
    """Base class of losses, which have no state. The setting `policy_loss` may name a plug-in.

    The loss must be a sum over the tokens of all rows, each multiplied by its row's weight, because
    the losses of micro-batches are added up.
    """

    @abstractmethod
    def compute(self, tokens: Tokens, *, objective: Objective) -> Loss:
        """Return the loss of all rows of `tokens`, with a differentiable `value`."""


class ClippedLoss(PolicyLoss):
    """The clipped policy gradient of GRPO and its variants (PPO, arXiv 1707.06347, equation 7).

    With the importance ratio r and the advantage A, the loss of a token is
    -min(r A, clip(r, 1 - epsilon, 1 + epsilon_high) A). The bounds are separate (clip-higher: DAPO,
    arXiv 2503.14476). If `delta` is not None, the r in the first product is at most `delta`
    (INTELLECT-2, arXiv 2505.07291). The baseline is the group's mean, so no value function is
    learned (GRPO, arXiv 2402.03300).
    """

    def compute(self, tokens: Tokens, *, objective: Objective) -> Loss:
        ratio = importance_ratio(tokens, level=objective.level)
        correction = tokens.correction
        advantages = tokens.advantages.unsqueeze(1)  # (B, 1)
        clipped = ratio.clamp(1 - objective.epsilon, 1 + objective.epsilon_high)
        bounded = ratio if objective.delta is None else ratio.clamp(max=objective.delta)
        losses = -torch.minimum(bounded * advantages, clipped * advantages)  # (B, T) or (B, 1)
        if correction is not None:
            shaped = -shaped_probability(tokens) * advantages  # (B, T)
            losses = torch.where(correction.shaped.unsqueeze(1), shaped, losses)
            losses = losses * correction.weight.unsqueeze(1)
        kl = torch.zeros_like(tokens.logprobs)
        if tokens.reference_logprobs is not None:
            kl = kl_to_reference(tokens, reference=tokens.reference_logprobs) * ratio
            losses = losses + objective.beta * kl
        with torch.no_grad():
            low = (ratio < 1 - objective.epsilon) & (advantages < 0)
            high = (ratio > 1 + objective.epsilon_high) & (advantages > 0)
            if objective.delta is not None:
                high = high | ((ratio > objective.delta) & (advantages < 0))
            if correction is not None:
                low, high = (side & ~correction.shaped.unsqueeze(1) for side in (low, high))
        return Loss(
            value=(losses * tokens.mask * tokens.weights.unsqueeze(1)).sum(),
            clip_low=(low * tokens.mask).sum().item(),
            clip_high=(high * tokens.mask).sum().item(),
            kl=(kl.detach() * tokens.mask).sum().item(),
        )


def make_policy_loss(name: str) -> PolicyLoss:
    """Return a `ClippedLoss` for the name `clipped`, or an instance of the plug-in of this name.

    A plug-in is named as `package.module:Class`. Raises SettingsError as `make_plugin` does.
    """
    return make_plugin(
        name,
        known={"clipped": ClippedLoss},
        base=PolicyLoss,  # type: ignore[type-abstract]
        setting="policy_loss",
    )


def importance_ratio(tokens: Tokens, *, level: ImportanceSamplingLevel) -> Tensor:
    """Return the ratio of new to old probability: (B, T) by token, or (B, 1) by row.

    A row's ratio is the geometric mean of its tokens' ratios (GSPO, arXiv 2507.18071, equation 7).

    If `tokens` have a correction, no ratio exceeds the correction's cap, but a capped ratio still
    has a gradient, as in truncated importance sampling. So a wrong token that is far likelier at
    this node than at its sender is still unlearned, with the cap as its weight.
    """
    # Padding is zeroed before exp, so that it can give neither inf nor NaN.
    log_ratio = (tokens.logprobs - tokens.old_logprobs) * tokens.mask  # (B, T)
    if level == "sequence":
        lengths = tokens.mask.sum(dim=1, keepdim=True).clamp(min=1)
        log_ratio = log_ratio.sum(dim=1, keepdim=True) / lengths  # (B, 1)
    if tokens.correction is not None:
        excess = log_ratio.detach() - tokens.correction.cap.log().unsqueeze(1)
        log_ratio = log_ratio - excess.clamp(min=0)
    return log_ratio.exp()


def shaped_probability(tokens: Tokens) -> Tensor:
    """Return p / (p + 0.1) for each token's probability p at this node (LUFFY, arXiv 2504.14945).

    In rows that are `shaped` (`Correction`), the result (B, T) replaces the importance ratio. Each
    token's probability at the sender is taken as 1. The gradient of the result vanishes for p near
    0, so text that the policy would never write hardly changes the policy.
    """
    probability = (tokens.logprobs * tokens.mask).exp()
    return probability / (probability + SHAPING)


def kl_to_reference(tokens: Tokens, *, reference: Tensor) -> Tensor:
    """Return an estimate (B, T), never negative, of each token's KL divergence from a reference.

    The estimator is k3 of http://joschu.net/blog/kl-approx.html. The caller multiplies the estimate
    by the importance ratio, so that it is unbiased for samples of another policy (DeepSeek-V3.2,
    arXiv 2512.02556; trl's default).
    """
    difference = (reference - tokens.logprobs) * tokens.mask
    return difference.exp() - difference - 1
