"""The external places of a training set, filled from what the pool offers."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from node_client.learning.external import DropReason, ExternalJudge, JudgedExternals
from node_client.learning.external_sampling import prefer_advantage
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import ExternalRollout


def fill_places(
    offered: Sequence[ExternalRollout],
    *,
    judge: ExternalJudge,
    places: int,
    config: TrainConfig,
    chance: random.Random,
) -> JudgedExternals:
    """Return what takes the external places, and why the rest of what was looked at does not."""
    if config.external_sampling == "uniform":
        return judge.judge(offered, wanted=places)
    judged = judge.judge(offered, wanted=len(offered))
    groups = prefer_advantage(judged.groups, wanted=places, chance=chance)
    not_drawn: Counter[DropReason] = Counter({"not_drawn": len(judged.groups) - len(groups)})
    return replace(judged, groups=groups, dropped=judged.dropped + not_drawn)
