"""An arm's gain by the number of rounds, and when it reaches the baseline's final score; pure.

The gain of an arm that only learns earlier shrinks with the number of rounds. An algorithm's
headline is often that it needs fewer steps for the same score (SRPO, arXiv 2504.14286). Arms
generate different amounts in a step, so tokens are counted beside rounds.
"""

from collections.abc import Sequence

import numpy as np

from node_client.lab.intervals import ratio_interval
from node_client.lab.outcomes import (
    HELD_OUT_WINDOW,
    cumulative_rewards,
    first_round_above,
    held_out_level,
)
from node_client.lab.report.numbers import round_ends, rounded, rounded_median
from node_client.lab.report.shape import GainAfter, Horizons, Reached
from node_client.lab.results import ArmData

PARTS = 5


def gains_by_horizon(arm: ArmData, baseline: ArmData, *, paired: Sequence[int]) -> Horizons:
    """Return an arm's gain in cumulative own reward after each fifth of the rounds."""
    total = len(baseline.runs[paired[0]].reward)
    ends = dict.fromkeys(round(total * part / PARTS) for part in range(1, PARTS + 1))
    return Horizons(arm.arm.name, [_gain_after(end, arm, baseline, paired) for end in ends if end])


def _gain_after(rounds: int, arm: ArmData, baseline: ArmData, paired: Sequence[int]) -> GainAfter:
    mine, theirs = (
        np.stack([cumulative_rewards(data.runs[seed].reward[:rounds]) for seed in paired])
        for data in (arm, baseline)
    )
    base = float(theirs.mean())
    low, high = round_ends(ratio_interval(mine, theirs))
    return GainAfter(
        rounds=rounds,
        gain=rounded(float(mine.mean()) / base) if base > 0 else None,
        gain_low=low,
        gain_high=high,
    )


def reach_baseline(arm: ArmData, baseline: ArmData, *, paired: Sequence[int]) -> Reached | None:
    """Return when an arm's runs reach the final held-out level of the baseline with their seeds.

    None with too few evaluations for a level, or if one of the baseline's levels is 0, which every
    run has reached from the start.
    """
    if len(baseline.runs[paired[0]].held_out_rounds) < HELD_OUT_WINDOW:
        return None
    levels = [float(held_out_level(baseline.runs[seed])[-1]) for seed in paired]
    if not all(levels):
        return None
    runs = [arm.runs[seed] for seed in paired]
    rounds = [first_round_above(run, level) for run, level in zip(runs, levels, strict=True)]
    tokens = [
        None if reached is None else float(run.tokens[:reached].sum())
        for run, reached in zip(runs, rounds, strict=True)
    ]
    return Reached(
        arm=arm.arm.name,
        runs=len(rounds) - rounds.count(None),
        rounds=rounded_median(rounds),
        tokens=rounded_median(tokens),
    )
