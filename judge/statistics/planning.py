"""Power analysis: how many nodes are needed to show an effect of sharing; no I/O.

The scores of nodes of one arm differ permanently, because machines and luck differ. They also vary
from round to round, because a round asks few questions. More rounds reduce only the variation from
round to round.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# The share of trials that should detect the difference.
POWER = 0.8
# The largest number of nodes per arm that a plan considers.
MAX_NODES = 100_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ScoreSpread:
    """Standard deviations of the scores in an arm, as score fractions.

    `nodes` is the permanent variation between the nodes, and `rounds` the variation of one node's
    score from round to round.
    """

    nodes: float
    rounds: float

    def after(self, rounds: int) -> float:
        """Return the standard deviation of the nodes' mean scores over `rounds` rounds."""
        return float(np.sqrt(self.nodes**2 + self.rounds**2 / rounds))


def estimate_spread(arms: Sequence[Floats], *, rounds: Ints, noise: Floats) -> ScoreSpread | None:
    """Return how much the scores of nodes of the same arm vary; None if no arm has two nodes.

    All arms together give one estimate. A node's deviation in a round is its score minus the mean
    score of all trained nodes of its model, whatever their arm. `arms` has an array for each arm,
    with the mean deviation of each of its nodes. No array is empty.

    `rounds` and `noise` have a value for each node of all arms, in any order. A value of `rounds`
    is the number of rounds in which the node was scored. A value of `noise` is the variance of the
    node's deviation over these rounds.
    """
    dof = sum(len(arm) - 1 for arm in arms)
    if dof < 1 or not len(rounds):
        return None
    observed = sum(float(((arm - arm.mean()) ** 2).sum()) for arm in arms) / dof
    single = float(noise.mean())
    between = max(0.0, observed - single * float((1 / rounds).mean()))
    return ScoreSpread(nodes=float(np.sqrt(between)), rounds=float(np.sqrt(single)))


def plan_nodes(
    effect: float, *, spread: ScoreSpread, rounds: int, alpha: float, minimum: int
) -> int:
    """Return how many nodes per arm detect a difference of `effect` with probability POWER.

    The result is at least `minimum`. It is MAX_NODES if no smaller number is enough. `effect` is a
    score fraction above 0. The test is a two-sided t test at level `alpha` after `rounds` rounds.
    """

    def find_power(nodes: int) -> float:
        return _find_power(nodes, effect, spread=spread, rounds=rounds, alpha=alpha)

    return bisect_left(range(MAX_NODES), POWER, lo=minimum, key=find_power)


def find_effect(nodes: int, *, spread: ScoreSpread, rounds: int, alpha: float) -> float:
    """Return the smallest difference that `nodes` nodes per arm detect with probability POWER.

    `nodes` is at least 2. The difference is a score fraction, accurate to 1e-4. It is 1 if no
    smaller difference is detected. The test is the same as in `plan_nodes`.
    """
    parts = 2**14

    def find_power(part: int) -> float:
        return _find_power(nodes, part / parts, spread=spread, rounds=rounds, alpha=alpha)

    return bisect_left(range(parts), POWER, lo=1, key=find_power) / parts


def _find_power(
    nodes: int, effect: float, *, spread: ScoreSpread, rounds: int, alpha: float
) -> float:
    """Return the probability that a two-sided t test with `nodes` in each arm detects `effect`."""
    # Imported here: it takes most of a second, and few processes need it.
    from scipy.stats import nct, t

    deviation = spread.after(rounds)
    if deviation == 0:
        return 1.0
    dof = 2 * nodes - 2
    critical, noncentrality = t.ppf(1 - alpha / 2, dof), effect / deviation * np.sqrt(nodes / 2)
    return float(nct.sf(critical, dof, noncentrality))
