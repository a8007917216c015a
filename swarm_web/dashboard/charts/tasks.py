"""The pass rates of one dataset by round and arm; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from django.utils.translation import gettext as _

from swarm_record.stats import macro_interval
from swarm_web.dashboard.charts.parts import (
    STYLES,
    Figure,
    count_axis,
    draw_band,
    draw_line,
    isolate,
    make_layout,
    share_axis,
)

# Number of rounds that a point pools: a single round has few questions of a dataset.
POOLED_ROUNDS = 10


@dataclass(frozen=True)
class RoundTally:
    """Number of right answers among the `n` answers of one arm in one round, in one dataset."""

    round: int
    correct: int
    n: int


@dataclass(frozen=True)
class PassRate:
    """The share of `n` answers that are right in the last rounds up to `round`; 95 % interval."""

    round: int
    rate: float
    low: float
    high: float
    n: int


def pool_tallies(tallies: Sequence[RoundTally], *, width: int = POOLED_ROUNDS) -> list[PassRate]:
    """Return the rate of each round, oldest first: over it and up to `width - 1` rounds before it.

    Rounds without any answers to pool are left out.
    """
    correct = [0, *accumulate(tally.correct for tally in tallies)]
    counted = [0, *accumulate(tally.n for tally in tallies)]
    rates = []
    for end, tally in enumerate(tallies, start=1):
        start = max(0, end - width)
        solved, n = correct[end] - correct[start], counted[end] - counted[start]
        if n:
            low, high = macro_interval(solved / n, n)
            rates.append(PassRate(tally.round, solved / n, low, high, n))
    return rates


def draw_pass_rates(rates: Mapping[str, Sequence[PassRate]]) -> Figure:
    """Draw a line for each arm's rates, oldest first, with the bands of intervals behind."""
    arms = [(arm, line) for arm, line in rates.items() if line]
    bands = [
        draw_band(
            [point.round for point in line],
            [point.low for point in line],
            [point.high for point in line],
            rgb=STYLES[arm][1],
        )
        for arm, line in arms
    ]
    rounds = [point.round for _, line in arms for point in line]
    return {
        "data": [*bands, *(_line(arm, line) for arm, line in arms)],
        "layout": make_layout(
            xaxis=count_axis(rounds, title=_("judge round")),
            yaxis=share_axis(title=_("share of right answers")),
        ),
    }


def _line(arm: str, line: Sequence[PassRate]) -> Figure:
    colour, _rgb, dash = STYLES[arm]
    names = {"swarm": _("swarm"), "isolated": _("isolated"), "base": _("untrained")}
    return draw_line(
        [point.round for point in line],
        [point.rate for point in line],
        name=names[arm],
        colour=colour,
        dash=dash,
    ) | {
        "customdata": [[point.low, point.high, point.n] for point in line],
        "hovertemplate": isolate(
            _(
                "%{y:.3f}, 95 % interval %{customdata[0]:.3f}–%{customdata[1]:.3f}, "
                "n = %{customdata[2]}"
            )
        ),
    }
