"""Advantages: how much better a completion did than the others of its group. Pure."""

from collections.abc import Sequence
from itertools import chain

import torch

from node_client.settings.choices import ScaleRewards

# As in trl: keeps the division finite, and lets nearly equal rewards give small advantages.
STD_FLOOR = 1e-4


def group_advantages(
    rewards: Sequence[Sequence[float]], *, scale_rewards: ScaleRewards
) -> list[list[float]]:
    """Return each reward's difference from the mean of its own group, for all groups of a set.

    `group` divides it by the group's standard deviation (GRPO, arXiv 2402.03300), `batch` by that
    of the whole set (arXiv 2508.08221), both Bessel-corrected as in trl; `none` leaves it as it is
    (Dr. GRPO, arXiv 2503.20783). Groups may differ in size; each has two completions or more.
    """
    groups = [torch.tensor(group, dtype=torch.float64) for group in rewards]
    whole = torch.tensor([*chain(*rewards)], dtype=torch.float64)
    advantages = []
    for group in groups:
        # Equal rewards give exactly zero: their mean may differ from them in the last bit.
        centred = group - (group.mean() if group.max() > group.min() else group[0])
        if scale_rewards != "none":
            deviation = (whole if scale_rewards == "batch" else group).std()
            centred = centred / (deviation + STD_FLOOR)
        advantages.append(centred.tolist())
    return advantages
