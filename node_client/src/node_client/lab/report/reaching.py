"""How soon an arm's held-out score is as high as the baseline's at the end; pure.

An algorithm's headline is often that it needs fewer steps for the same score (SRPO, arXiv
2504.14286). Arms generate different amounts in a step, so tokens are counted beside rounds.
"""

from collections.abc import Sequence

import numpy as np

from node_client.lab.outcomes import HELD_OUT_WINDOW, held_out_level, reaches
from node_client.lab.report.rounding import rounded
from node_client.lab.report.shape import Reached
from node_client.lab.results import ArmData, RunData

_NEVER = float("inf")


def reach_baseline(arm: ArmData, baseline: ArmData, *, paired: Sequence[int]) -> Reached | None:
    """Return when an arm's runs reach the baseline's last level with the same seed.

    None where held-out questions were asked too rarely for a level, or a baseline's level is 0:
    every run begins there.
    """
    if len(baseline.runs[paired[0]].held_out_rounds) < HELD_OUT_WINDOW:
        return None
    levels = [float(held_out_level(baseline.runs[seed])[-1]) for seed in paired]
    if not all(levels):
        return None
    rounds, tokens = [], []
    for seed, level in zip(paired, levels, strict=True):
        run = arm.runs[seed]
        reached = reaches(run, level)
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
