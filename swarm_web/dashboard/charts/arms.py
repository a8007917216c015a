"""The mean scores of one model's swarm, isolated and untrained nodes over rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from django.utils.translation import gettext as _

from swarm_record.stats import student_quantile
from swarm_web.dashboard.charts.parts import (
    ARM_NAMES,
    STYLES,
    Figure,
    draw_band,
    draw_line,
    layout_shares,
)
from swarm_web.dashboard.charts.scores import POOLED_ROUNDS


@dataclass(frozen=True)
class ArmPoint:
    """One arm in one round: its number of nodes, and mean and sample variance of their scores."""

    round: int
    nodes: int
    mean: float
    variance: float


@dataclass(frozen=True)
class ArmMean:
    """An arm's mean score over up to POOLED_ROUNDS rounds, the last of which is `round`.

    `nodes` is the mean number of nodes in these rounds. The 95 % Student's t interval is computed
    from the spread between nodes in single rounds; None if each of the rounds had a single node. A
    mean over several rounds usually varies less than the mean of one round, so the interval is
    usually wider than necessary.
    """

    round: int
    nodes: float
    mean: float
    interval: tuple[float, float] | None


def pool_arm(points: Sequence[ArmPoint]) -> list[ArmMean]:
    """Return an ArmMean for each point, over this point and the POOLED_ROUNDS - 1 points before it.

    `points` are the rounds of one arm, oldest first.
    """
    ends = range(1, len(points) + 1)
    return [_average(points[max(0, end - POOLED_ROUNDS) : end]) for end in ends]


def _average(window: Sequence[ArmPoint]) -> ArmMean:
    nodes, mean, variance = (
        sum(values) / len(window)
        for values in zip(*((p.nodes, p.mean, p.variance) for p in window), strict=True)
    )
    interval = None
    if nodes > 1:
        half = student_quantile(nodes - 1) * sqrt(variance / nodes)
        interval = (max(0.0, mean - half), min(1.0, mean + half))
    return ArmMean(window[-1].round, nodes, mean, interval)


def draw_arms(arms: Mapping[str, Sequence[ArmMean]]) -> Figure:
    """Draw a line for each arm's means, oldest first, with the bands of intervals behind."""
    bands, lines = [], []
    for arm, name in ARM_NAMES.items():
        means = arms.get(arm, ())
        colour, rgb, dash = STYLES[arm]
        if banded := [mean for mean in means if mean.interval]:
            lows, highs = zip(*(mean.interval for mean in banded if mean.interval), strict=True)
            bands.append(draw_band([mean.round for mean in banded], lows, highs, rgb=rgb))
        if means:
            at, scores = [mean.round for mean in means], [mean.mean for mean in means]
            line = draw_line(at, scores, name=str(name), colour=colour, dash=dash)
            nodes = {"customdata": [round(mean.nodes, 1) for mean in means]}
            lines.append(line | nodes | {"hovertemplate": "%{y:.3f}, n = %{customdata}"})
    rounds = [mean.round for means in arms.values() for mean in means]
    layout = layout_shares(rounds, title=_("judge score (macro pass@1)"))
    return {"data": [*bands, *lines], "layout": layout}
