"""Intervals of means and ratios over runs, by a bootstrap of seeds and of nodes within them; pure.

A draw takes as many seeds as there are, with replacement, and of each as many nodes (A. C. Davison,
D. V. Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). Plain percentiles of the
draws are too narrow with a handful of seeds, so the percentiles are moved outwards as Student's t
asks (T. C. Hesterberg, The American Statistician 69(4), 2015: the expanded percentile interval).
All chance is fixed: the same values give the same interval.
"""

import math
from functools import lru_cache

import numpy as np

from node_client.lab.statistics import Floats

CONFIDENCE = 0.95
# With fewer seeds an interval would say more than is known.
LEAST_SEEDS = 3
DRAWS = 10_000
CURVE_DRAWS = 2_000
_CHANCE = 20_261_123

Interval = tuple[float, float]


def mean_interval(values: Floats) -> Interval | None:
    """Return the interval of the mean of values (seeds, nodes); None with too few seeds."""
    weights = _weights(*values.shape, draws=DRAWS)
    return _interval(weights @ values.ravel(), seeds=len(values))


def difference_interval(values: Floats, others: Floats) -> Interval | None:
    """Return the interval of the difference of two arms' means, paired by seed.

    Both are (seeds, nodes). Where both arms have equally many nodes, those at the same place are
    drawn together: they had the same base and the same questions.
    """
    mine, theirs = _resampled_pair(values, others)
    return _interval(mine - theirs, seeds=len(values))


def ratio_interval(values: Floats, others: Floats) -> Interval | None:
    """Return the interval of the ratio of two arms' means, paired as by `difference_interval`.

    None also where the other arm's mean could be zero.
    """
    mine, theirs = _resampled_pair(values, others)
    if theirs.min() <= 0:
        return None
    return _interval(mine / theirs, seeds=len(values))


def mean_band(curves: Floats) -> tuple[Floats, Floats] | None:
    """Return the ends of each round's interval of the mean of curves (seeds, nodes, rounds)."""
    seeds, nodes, rounds = curves.shape
    if seeds < LEAST_SEEDS:
        return None
    means = _weights(seeds, nodes, draws=CURVE_DRAWS) @ curves.reshape(seeds * nodes, rounds)
    low, high = np.quantile(means, _levels(seeds), axis=0)
    return low, high


def _resampled_pair(values: Floats, others: Floats) -> tuple[Floats, Floats]:
    return (
        _weights(*values.shape, draws=DRAWS) @ values.ravel(),
        _weights(*others.shape, draws=DRAWS) @ others.ravel(),
    )


@lru_cache(maxsize=4)
def _weights(seeds: int, nodes: int, *, draws: int) -> Floats:
    """Return each draw's weight of each value, (draws, seeds * nodes); rows sum to 1.

    Arms with equally many seeds have the same seeds drawn.
    """
    drawn = np.random.default_rng([_CHANCE, 0]).integers(seeds, size=(draws, seeds, 1))
    within = np.random.default_rng([_CHANCE, 1, nodes]).integers(nodes, size=(draws, seeds, nodes))
    size = seeds * nodes
    places = np.arange(draws)[:, None, None] * size + drawn * nodes + within
    counts = np.bincount(places.ravel(), minlength=draws * size)
    return counts.reshape(draws, size) / size


def _interval(draws: Floats, *, seeds: int) -> Interval | None:
    if seeds < LEAST_SEEDS:
        return None
    low, high = np.quantile(draws, _levels(seeds))
    return float(low), float(high)


@lru_cache
def _levels(seeds: int) -> Interval:
    """Return which percentiles of the draws bound the interval, as shares."""
    from scipy.special import ndtr, stdtrit  # in the extra `lab`, as nothing else needs it

    low = float(ndtr(stdtrit(seeds - 1, (1 - CONFIDENCE) / 2) * math.sqrt(seeds / (seeds - 1))))
    return low, 1 - low
