"""The pass rates of one dataset by round and arm; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from django.utils.translation import gettext as _

from swarm_record.stats import macro_interval
from swarm_web.dashboard.charts.parts import (
    ARM_NAMES,
    Figure,
    PooledShare,
    draw_intervals,
    draw_shares,
    layout_shares,
)

# Number of rounds that a point pools: a single round has few questions of a dataset.
POOLED_ROUNDS = 10


@dataclass(frozen=True)
class RoundTally:
    """The answers of one arm in one round and one dataset: `correct` of `n` are right."""

    round: int
    correct: int
    n: int


def pool_tallies(tallies: Sequence[RoundTally], *, arm: str) -> list[PooledShare]:
    """Return a pass rate for each round, over this and the POOLED_ROUNDS - 1 previous rounds.

    `tallies` and the result are oldest first. A round is left out if there are no answers to pool.
    """
    correct = [0, *accumulate(tally.correct for tally in tallies)]
    counted = [0, *accumulate(tally.n for tally in tallies)]
    rates = []
    for end, tally in enumerate(tallies, start=1):
        start = max(0, end - POOLED_ROUNDS)
        solved, n = correct[end] - correct[start], counted[end] - counted[start]
        if n:
            interval = macro_interval(solved / n, n)
            rates.append(PooledShare(tally.round, arm, solved / n, interval, n))
    return rates


def draw_pass_rates(lines: Sequence[Sequence[PooledShare]]) -> Figure:
    """Draw a line for each arm's rates, oldest first, with a band of intervals behind it."""
    drawn = [line for line in lines if line]
    rounds = [point.round for line in drawn for point in line]
    return {
        "data": [
            *(draw_intervals(line) for line in drawn),
            *(draw_shares(line, name=str(ARM_NAMES[line[-1].arm])) for line in drawn),
        ],
        "layout": layout_shares(rounds, title=_("share of right answers")),
    }
