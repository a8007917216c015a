"""Dynamic sampling: generate until there is enough to learn from (DAPO, arXiv 2503.14476, 3.2).

DAPO over-samples and leaves out prompts whose completions are all right or all wrong, until the
batch is full of prompts with an advantage. The paper has no bound; here there is one, because a
model that solves nothing, or everything, would never finish a step. Where the bound is reached,
uninformative rollouts fill the training set, which keeps its size.

Pure: no verifier, no model.
"""

import random
from collections.abc import Sequence

from node_client.learning.rollouts import TrainingGroup


def needs_more(
    groups: Sequence[TrainingGroup], *, wanted: int, batch: int, most_batches: int
) -> bool:
    """Whether another batch may be generated, because fewer groups than wanted are informative."""
    informative = sum(group.informative for group in groups)
    return informative < wanted and len(groups) + batch <= most_batches * batch


def prefer_informative(
    groups: Sequence[TrainingGroup], *, count: int, chance: random.Random
) -> list[TrainingGroup]:
    """Return `count` of the groups, or all: informative ones drawn uniformly, then the others."""
    shuffled = chance.sample(groups, len(groups))
    return sorted(shuffled, key=lambda group: not group.informative)[:count]
