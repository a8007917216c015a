"""Which of the usable external rollouts fill the places. Pure."""

import math
import random
from collections.abc import Sequence

from node_client.learning.advantages import group_advantages
from node_client.learning.rollouts import TrainingGroup


def prefer_advantage(
    groups: Sequence[TrainingGroup], *, wanted: int, chance: random.Random
) -> list[TrainingGroup]:
    """Draw up to `wanted` groups, each with a chance in proportion to its largest advantage.

    With rewards of 0 and 1 and a share p of right completions that is sqrt((1 - p) / p), up to a
    constant: the rarer the right ones, the likelier. Groups without any advantage come last. Drawn
    without replacement by exponential keys (Efraimidis and Spirakis 2006).
    """
    advantages = group_advantages([group.rewards for group in groups], scale_rewards="group")
    keys = [
        (math.log(1 - chance.random()) / best if best > 0 else -math.inf)
        for best in (max(of_group) for of_group in advantages)
    ]
    order = sorted(range(len(groups)), key=keys.__getitem__, reverse=True)
    return [groups[place] for place in order[:wanted]]
