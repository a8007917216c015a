"""Bootstrap intervals of means, differences and ratios over runs.

Each draw resamples the seeds with replacement, and within each drawn seed its nodes with
replacement (A. C. Davison, D. V. Hinkley, Bootstrap Methods and their Application, 1997, section
3.8). With a handful of seeds, plain percentile intervals are too narrow, so they are widened by
Student's t (T. C. Hesterberg, The American Statistician 69(4), 2015: the expanded percentile
interval). The random seed is fixed: the same values give the same interval.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from node_client.lab.statistics import Floats

CONFIDENCE = 0.95
# A bootstrap stays in the range of its seeds: with three, that range contains the true mean of one
# value per run only 3 times in 4.
MIN_SEEDS = 4
DRAWS = 10_000
CURVE_DRAWS = 2_000
# Draws at once, which limits the memory for swarms of thousands.
_PORTION = 500
_RNG_SEED = 20_261_123

Interval = tuple[float, float]


def mean_interval(values: Floats) -> Interval | None:
    """Return the interval of the mean of `values`, or None with fewer than MIN_SEEDS seeds.

    `values` is (seeds, nodes).
    """
    return _interval(_resampled(values, draws=DRAWS), seeds=len(values))


def difference_interval(values: Floats, others: Floats) -> Interval | None:
    """Return the interval of the difference of two arms' means, paired by seed.

    `values` and `others` are (seeds, nodes). If both have the same number of nodes, each bootstrap
    draw takes the same nodes from both, because a node usually has the same base and the same
    questions in both arms. Returns None with fewer than MIN_SEEDS seeds.
    """
    mine, theirs = _resampled_pair(values, others)
    return _interval(mine - theirs, seeds=len(values))


def ratio_interval(values: Floats, others: Floats) -> Interval | None:
    """Return the interval of the ratio of two arms' means, paired as by `difference_interval`.

    Returns None with fewer than MIN_SEEDS seeds, or if the mean of `others` is 0 or less in a
    bootstrap draw.
    """
    mine, theirs = _resampled_pair(values, others)
    if theirs.min() <= 0:
        return None
    return _interval(mine / theirs, seeds=len(values))


def mean_band(curves: Floats) -> tuple[Floats, Floats] | None:
    """Return the lower and the upper ends, each (rounds,), of the intervals of the mean curve.

    `curves` is (seeds, nodes, rounds). Returns None with fewer than MIN_SEEDS seeds.
    """
    seeds = len(curves)
    if seeds < MIN_SEEDS:
        return None
    means = _resampled(curves, draws=CURVE_DRAWS)
    low, high = np.quantile(means, expanded_levels(seeds), axis=0)
    return low, high


def _resampled_pair(values: Floats, others: Floats) -> tuple[Floats, Floats]:
    return _resampled(values, draws=DRAWS), _resampled(others, draws=DRAWS)


def _resampled(values: Floats, *, draws: int) -> Floats:
    """Return the mean over seeds and nodes in each bootstrap draw.

    The result is (draws,) for `values` (seeds, nodes), and (draws, rounds) for `values` (seeds,
    nodes, rounds).
    """
    seeds, nodes = values.shape[:2]
    flat = values.reshape(seeds * nodes, *values.shape[2:])
    counts = _counts(seeds, nodes, draws=draws)
    portions = (counts[at : at + _PORTION] / len(flat) for at in range(0, draws, _PORTION))
    return np.concatenate([portion @ flat for portion in portions])


@lru_cache(maxsize=4)
def _counts(seeds: int, nodes: int, *, draws: int) -> npt.NDArray[np.uint16]:
    """Return how many times each value occurs in each bootstrap draw, as (draws, seeds * nodes).

    A draw takes seeds at random, with replacement, and then nodes of each drawn seed in the same
    way. The drawn seeds are the same for all arms with the same number of seeds.
    """
    drawn = np.random.default_rng([_RNG_SEED, 0]).integers(seeds, size=(draws, seeds, 1))
    within = np.random.default_rng([_RNG_SEED, 1, nodes])
    size = seeds * nodes
    counts: npt.NDArray[np.uint16] = np.empty((draws, size), dtype=np.uint16)
    for at in range(0, draws, _PORTION):
        portion = counts[at : at + _PORTION]
        first = np.arange(len(portion))[:, None, None] * size + drawn[at : at + _PORTION] * nodes
        places = first + within.integers(nodes, size=(len(portion), seeds, nodes))
        portion[:] = np.bincount(places.ravel(), minlength=portion.size).reshape(portion.shape)
    return counts


def _interval(draws: Floats, *, seeds: int) -> Interval | None:
    if seeds < MIN_SEEDS:
        return None
    low, high = np.quantile(draws, expanded_levels(seeds))
    return float(low), float(high)


@lru_cache
def expanded_levels(seeds: int) -> Interval:
    """Return the levels of the two quantiles of the bootstrap draws that bound the interval.

    The levels are in [0, 1]. The lower one is below .025 and the upper one above .975, because the
    percentile interval is expanded (see the module).
    """
    from scipy.special import ndtr, stdtrit  # slow to import

    low = float(ndtr(stdtrit(seeds - 1, (1 - CONFIDENCE) / 2) * math.sqrt(seeds / (seeds - 1))))
    return low, 1 - low
