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
from node_client.lab.report.numbers import rounded
from node_client.lab.report.shape import GainAfter, Horizons, Reached
from node_client.lab.results import ArmData, RunData

PARTS = 5
_NEVER = float("inf")


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
    low, high = ratio_interval(mine, theirs) or (None, None)
    return GainAfter(
        rounds=rounds,
        gain=rounded(float(mine.mean()) / base) if base > 0 else None,
        gain_low=None if low is None else rounded(low),
        gain_high=None if high is None else rounded(high),
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
    rounds, tokens = [], []
    for seed, level in zip(paired, levels, strict=True):
        run = arm.runs[seed]
        reached = first_round_above(run, level)
        rounds.append(_NEVER if reached is None else reached)
        tokens.append(_NEVER if reached is None else _tokens_by(run, reached))
    return Reached(
        arm=arm.arm.name,
        runs=sum(each < _NEVER for each in rounds),
        rounds=_median(rounds),
        tokens=_median(tokens),
    )


def _tokens_by(run: RunData, rounds: int) -> float:
    return float(run.tokens[:rounds].sum())


def _median(values: Sequence[float]) -> float | None:
    median = float(np.median(values))
    return rounded(median) if median < _NEVER else None
