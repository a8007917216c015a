"""A randomisation test that is valid at every look; no I/O.

If a coin assigned the arms, the assignment mechanism is known exactly. Under Fisher's sharp null
hypothesis, that no score depends on any node's arm, the scores are the same however the coin falls.
So the arms that the coin drew and the arms that it might have drawn (`shuffle_arms`) are
exchangeable. Each assignment of arms has a path: the distances between the arms at all looks
(`measure_gaps`). The observed path is significant if few other paths have distances as large.
Nothing is assumed about the distribution of scores, their dependence, or when nodes join (R. A.
Fisher, The Design of Experiments, 1935).

All looks share one error budget (K. K. G. Lan, D. L. DeMets, Biometrika 70(3), 1983); the share of
it that the first k looks may use is spent[k]. So in a test of level a, the paths rejected in these
looks are at most a * spent[k] of all paths. Under the null hypothesis every path is equally likely
to be the observed one, so the probability of a false rejection is at most a. `compute_p_values`
returns the lowest level at which the observed path has been rejected.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

# Number of assignments drawn besides the observed one.
DRAWS = 4_999
# The levels that are tried, 3 % apart: from 1 down to one path's share.
_LEVELS = np.append(1.0, 0.05 * 1.03 ** np.arange(101, -187, -1))
# Variances below this are rounding.
_ROUNDING = 1e-18
# Labels converted to floats at a time: 80 MB.
_BATCH = 10_000_000

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]


def shuffle_arms(
    places: Sequence[tuple[int, int]], blocks: Mapping[int, Sequence[bool]], *, seed: int
) -> Bits:
    """Return assignments of arms [1 + DRAWS, nodes], true for swarm; the first is the observed one.

    `places` has a pair for each node: the number of its block and its place in the block. `blocks`
    maps a block's number to the arms of all places in the block, including places that no node has
    taken. Each assignment except the first shuffles the arms of each block over all of these
    places, seeded only by `seed` and the block's number. So the arms drawn for a node stay the same
    when another node takes a free place.
    """
    labels = np.empty((1 + DRAWS, len(places)), dtype=bool)
    shuffled: dict[int, Bits] = {}
    for node, (block, place) in enumerate(places):
        if block not in shuffled:
            arms = np.array(blocks[block], dtype=bool)
            drawn = np.tile(arms, (DRAWS, 1))
            drawn = np.random.default_rng([seed, block]).permuted(drawn, axis=1)
            shuffled[block] = np.vstack([arms, drawn])
        labels[:, node] = shuffled[block][:, place]
    return labels


def measure_gaps(labels: Bits, values: Floats, *, minimum: int) -> Floats:
    """Return the distance between the arms at each look for each assignment [looks, assignments].

    The distance is the absolute value of Welch's t, or -1 where an arm has fewer than `minimum`
    nodes that count at the look. `labels` [assignments, nodes] are assignments of arms, true for
    swarm. `values` [looks, nodes] is NaN where a node does not count.
    """
    counted = ~np.isnan(values)
    deviations = np.where(counted, values - np.nanmean(values, axis=1, keepdims=True), 0)
    sums = np.stack([counted, deviations, deviations**2]).astype(np.float64)
    gaps = np.empty((len(values), len(labels)))
    rows = max(1, _BATCH // max(1, labels.shape[1]))
    for start in range(0, len(labels), rows):
        some = labels[start : start + rows].astype(np.float64)
        swarm = sums @ some.T
        isolated = sums.sum(axis=2, keepdims=True) - swarm
        gaps[:, start : start + rows] = _compute_t(swarm, isolated, minimum=minimum)
    return gaps


def _compute_t(swarm: Floats, isolated: Floats, *, minimum: int) -> Floats:
    """Return Welch's |t| [looks, assignments], or -1 where an arm has fewer than `minimum` nodes.

    `swarm` and `isolated` [3, looks, assignments] are the number of nodes in the arm, the sum of
    their values, and the sum of the squares of their values.
    """
    means, errors = [], []
    for count, total, squares in (swarm, isolated):
        mean = total / np.maximum(1, count)
        spread = np.maximum(squares - count * mean**2, 0) / np.maximum(1, count - 1)
        means.append(mean)
        errors.append(spread / np.maximum(1, count))
    t = np.abs(means[0] - means[1]) / np.sqrt(errors[0] + errors[1] + _ROUNDING)
    # Equal values must not differ by rounding errors.
    gaps: Floats = np.where(np.minimum(swarm[0], isolated[0]) < minimum, -1.0, t.round(6))
    return gaps


def compute_p_values(gaps: Floats, *, spent: Floats) -> Floats:
    """Return the p-value of the observed path after each look [looks].

    A path is the distances between the arms at all looks, for one assignment of arms or signs. Each
    column of `gaps` [looks, paths] is a path, and the first is the observed one. `spent` [looks] is
    the share of the error budget that all looks up to this one may use; it rises to at most 1.

    The p-value never rises from one look to the next. Under the null hypothesis, the probability
    that it ever falls to a level a or below is at most a. P-values are rounded up to one of
    `_LEVELS`.
    """
    paths = gaps.shape[1]
    reached = np.ones(paths)
    p_values = np.empty(len(gaps))
    for look, (gap, share) in enumerate(zip(gaps, spent, strict=True)):
        quotas = np.floor(_LEVELS * share * paths + 1e-9).astype(np.int64)
        thresholds = _find_thresholds(gap, reached, quotas)
        # The lowest level whose threshold the path passes; thresholds rise as levels fall.
        passed = np.searchsorted(thresholds, gap, side="left")
        found = np.where(passed > 0, _LEVELS[np.maximum(passed, 1) - 1], 1.0)
        reached = np.minimum(reached, found)
        p_values[look] = reached[0]
    return p_values


def _find_thresholds(gap: Floats, reached: Floats, quotas: npt.NDArray[np.int64]) -> Floats:
    """Return the thresholds [levels] that apply at one look, one for each significance level.

    A path is rejected at a level if its distance is larger than the level's threshold. `gap`
    [paths] has the distances at this look, and `reached` [paths] the lowest level at which each
    path was rejected at earlier looks, 1 if none. `quotas` [levels] is the largest number of paths
    that may be rejected at each level, at this and earlier looks together. A stricter (lower) level
    never has a lower threshold.
    """
    order = np.argsort(-gap, kind="stable")
    ranked, before = gap[order], reached[order]
    # With a quota of 0 no path passes.
    thresholds = np.full(len(_LEVELS), np.inf)
    for i in np.flatnonzero(quotas):
        newly_passed = np.cumsum(before > _LEVELS[i])
        remaining = quotas[i] - (len(before) - newly_passed[-1])
        # The first path beyond the quota; paths that tie with it do not pass either.
        first = int(np.searchsorted(newly_passed, max(remaining, 0), side="right"))
        thresholds[i] = ranked[first] if first < len(ranked) else -1.0
    return np.maximum.accumulate(thresholds)
