"""Comparisons of two arms, paired by seed.

`compare` compares them in one outcome. The gain of an arm that only learns earlier shrinks with the
number of rounds, so `gains_by_horizon` computes the gain for shorter runs too. `reach_baseline`
measures how soon an arm reaches the baseline's score, as other work does in steps (SRPO, arXiv
2504.14286). It counts tokens as well as rounds, because arms generate different amounts in a step.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from node_client.lab.intervals import difference_interval, ratio_interval
from node_client.lab.outcomes import (
    HELD_OUT_WINDOW,
    cumulative_rewards,
    first_round_above,
    held_out_level,
)
from node_client.lab.report.numbers import round_ends, rounded, rounded_median
from node_client.lab.report.shape import (
    ArmComparison,
    ArmReport,
    GainAfter,
    GroupOfNodes,
    Horizons,
    Outcome,
    Reached,
    SeedOutcome,
)
from node_client.lab.results import ArmData
from node_client.lab.statistics import Floats, holm, paired_test

# Gains are given after each fifth of the rounds.
PARTS = 5
# Outcomes of each node; the others are of a whole run.
BY_NODE = ("own", "training_set", "held_out_area", "held_out_final")


def compare(
    arm: ArmReport,
    against: ArmReport,
    outcome: Outcome,
    *,
    seeds: Sequence[int],
    group: GroupOfNodes | None = None,
) -> ArmComparison | None:
    """Compare an arm with `against` in one outcome. The runs of the two arms are paired by seed.

    Both arms must have been run with each of `seeds`. If `group` is given, only its nodes are
    compared, and the outcome must be in BY_NODE. In the result, `p_adjusted` equals `p`;
    `adjust` and `lab.summary.find` change it. Returns None if a run of either arm with one of
    `seeds` lacks the outcome.
    """
    mine = _values(arm, outcome, seeds, group)
    theirs = _values(against, outcome, seeds, group)
    if mine is None or theirs is None:
        return None
    test = paired_test(mine.mean(axis=1) - theirs.mean(axis=1))
    base = float(theirs.mean())
    gain_low, gain_high = round_ends(ratio_interval(mine, theirs))
    low, high = round_ends(difference_interval(mine, theirs))
    return ArmComparison(
        arm=arm.name,
        against=against.name,
        outcome=outcome,
        group=group.name if group else None,
        seeds=len(seeds),
        gain=rounded(float(mine.mean()) / base) if base > 0 else None,
        gain_low=gain_low,
        gain_high=gain_high,
        difference=rounded(float(mine.mean()) - base),
        difference_low=low,
        difference_high=high,
        p=rounded(test.p),
        p_greater=rounded(test.p_greater),
        p_adjusted=rounded(test.p),
        least_p=rounded(test.least_p),
    )


def adjust(comparisons: Sequence[ArmComparison], *, arms: int = 0) -> list[ArmComparison]:
    """Return the comparisons, in the same order, with p-values adjusted by Holm's method.

    For each outcome, there are two separate adjustments: one for comparisons of whole arms, one for
    comparisons of groups of nodes. `arms` is the number of arms that are to be compared with the
    baseline. It includes arms without runs yet. Otherwise p-values would grow when the runs of
    these arms are finished. If `arms` is 0, only the given comparisons count.
    """
    families: dict[tuple[str, bool], list[int]] = {}
    for place, each in enumerate(comparisons):
        families.setdefault((each.outcome, each.group is not None), []).append(place)
    adjusted = list(comparisons)
    for (_, grouped), places in families.items():
        groups = {comparisons[place].group for place in places} if grouped else {None}
        p_values = holm([comparisons[place].p for place in places], of=arms * len(groups))
        for place, p in zip(places, p_values, strict=True):
            adjusted[place] = replace(comparisons[place], p_adjusted=rounded(p))
    return adjusted


def _values(
    arm: ArmReport, outcome: Outcome, seeds: Sequence[int], group: GroupOfNodes | None
) -> Floats | None:
    """Return the outcome as (seeds, nodes), or (seeds, 1) if it is measured for whole runs.

    Returns None if a run lacks the outcome. `group` selects nodes, and requires an outcome in
    BY_NODE.
    """
    by_seed = {each.seed: each for each in arm.seeds}
    rows = [_row(by_seed[seed], outcome) for seed in seeds]
    if not all(rows):
        return None
    values = np.array(rows, dtype=np.float64)
    return values if group is None else values[:, group.first : group.last + 1]


def _row(outcomes: SeedOutcome, outcome: Outcome) -> list[float]:
    if outcome in BY_NODE:
        by_node: list[float] = getattr(outcomes, f"{outcome}_by_node")
        return by_node
    value = getattr(outcomes, outcome)
    return [] if value is None else [value]


def gains_by_horizon(arm: ArmData, baseline: ArmData, *, paired: Sequence[int]) -> Horizons:
    """Return an arm's gain in cumulative own reward after each fifth of the rounds.

    `paired` has the seeds with runs of both arms, over which the gain is computed.
    """
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
    """Return how many of an arm's runs reach the baseline's final held-out score, and when.

    Scores are those of `held_out_level`. The target of each run is the final score of the
    baseline's run with the same seed. A run reaches its target in the first round from which its
    score stays at or above the target. Returns None with fewer than HELD_OUT_WINDOW evaluations.
    Also returns None if a target is 0, because every score is at least 0 from the start.
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
