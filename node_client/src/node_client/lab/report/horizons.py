"""How much of an arm's gain is due to where an experiment stops; pure.

An arm that only starts earlier has a gain that shrinks as rounds go on.
"""

from collections.abc import Sequence

import numpy as np

from node_client.lab.intervals import ratio_interval
from node_client.lab.outcomes import sums
from node_client.lab.report.rounding import rounded
from node_client.lab.report.shape import GainAfter, Horizons
from node_client.lab.results import ArmData

PARTS = 5


def gains_by_horizon(arm: ArmData, baseline: ArmData, *, paired: Sequence[int]) -> Horizons:
    """Return an arm's gain in cumulative own reward after each fifth of the rounds."""
    total = len(baseline.runs[paired[0]].reward)
    ends = dict.fromkeys(round(total * part / PARTS) for part in range(1, PARTS + 1))
    return Horizons(arm.arm.name, [_gain_after(end, arm, baseline, paired) for end in ends if end])


def _gain_after(rounds: int, arm: ArmData, baseline: ArmData, paired: Sequence[int]) -> GainAfter:
    mine, theirs = (
        np.stack([sums(data.runs[seed].reward[:rounds]) for seed in paired])
        for data in (arm, baseline)
    )
    base = float(theirs.mean())
    low, high = ratio_interval(mine, theirs) or (None, None)
    return GainAfter(
        rounds=rounds,
        gain=rounded(float(mine.mean()) / base) if base > 0 else None,
        gain_low=None if low is None else rounded(low),
        gain_high=None if high is None else rounded(high),
    )
