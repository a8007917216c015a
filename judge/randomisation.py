"""A randomisation test that is valid at every look; pure.

Where a coin chose the arms, one thing about a trial is known for certain: how the coin was thrown.
Under Fisher's sharp null hypothesis, that no score depends on anybody's arm, all scores stay what
they are however the coin falls. So the arms that it drew and many that it might have drawn,
`shuffle_arms`, are alike, and each of them has a path of statistics over the looks, `measure_gaps`.
The observed path is notable if few of the others reach as far. What the scores do, how they hang
together, and who comes late does not matter (R. A. Fisher, The Design of Experiments, 1935).

Looks are paid for out of one budget (K. K. G. Lan, D. L. DeMets, Biometrika 70(3), 1983). At a test
of level a, the paths that were called notable at the k-th look or before are at most a * spent[k]
of all paths; whichever of them was observed is as likely as any other. `compute_p_values` returns
the lowest level at which the observed path has been called notable.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Arms that are drawn beside the observed ones.
DRAWS = 4_999
# The levels that are tried, 3 % apart: from 1 down to what one of the paths is worth.
_LEVELS = np.append(1.0, 0.05 * 1.03 ** np.arange(101, -187, -1))
# Variances below this are rounding.
_ROUNDING = 1e-18
# Labels turned to numbers at a time: 40 MB.
_BATCH = 10_000_000

Floats = npt.NDArray[np.float64]
Reals = npt.NDArray[np.floating[Any]]
Bits = npt.NDArray[np.bool_]


def shuffle_arms(
    places: Sequence[tuple[int, int]], blocks: Mapping[int, Sequence[bool]], *, seed: int
) -> Bits:
    """Return labels [1 + DRAWS, nodes], true for swarm: the observed ones, then as many drawn.

    `places` says which place of which block each node has, and `blocks` what the coin wrote on a
    block's places, free ones included. A block's labels are shuffled within the block, by `seed`
    and the block's number alone, so that nodes that come later change nothing about earlier ones.
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
    """Return how far apart the arms are [looks, labels]: Welch's t, without its sign.

    `values` [looks, nodes] is NaN where a node does not count at a look. -1 stands where an arm
    has fewer than `minimum` nodes.
    """
    counted = ~np.isnan(values)
    known = np.where(counted, values, 0)
    known = np.where(counted, known - _mean(known, counted), 0)
    sums = np.stack([counted, known, known**2]).astype(np.float64)
    gaps = np.empty((len(values), len(labels)))
    rows = max(1, _BATCH // max(1, labels.shape[1]))
    for start in range(0, len(labels), rows):
        some = labels[start : start + rows].astype(np.float64)
        swarm = sums @ some.T
        isolated = sums.sum(axis=2, keepdims=True) - swarm
        gaps[:, start : start + rows] = _compute_t(swarm, isolated, minimum=minimum)
    return gaps


def _mean(known: Floats, counted: Bits) -> Floats:
    means: Floats = known.sum(axis=1, keepdims=True) / np.maximum(
        1, counted.sum(axis=1, keepdims=True)
    )
    return means


def _compute_t(swarm: Floats, isolated: Floats, *, minimum: int) -> Floats:
    """Return Welch's t from counts, sums and sums of squares of either arm [3, looks, labels]."""
    means, errors = [], []
    for count, total, squares in (swarm, isolated):
        mean = total / np.maximum(1, count)
        spread = np.maximum(squares - count * mean**2, 0) / np.maximum(1, count - 1)
        means.append(mean)
        errors.append(spread / np.maximum(1, count))
    t = np.abs(means[0] - means[1]) / np.sqrt(errors[0] + errors[1] + _ROUNDING)
    # Rounding must not tell apart what is equal.
    gaps: Floats = np.where(np.minimum(swarm[0], isolated[0]) < minimum, -1.0, t.round(6))
    return gaps


def compute_p_values(gaps: Floats, *, spent: Floats) -> Floats:
    """Return the p-value after each look [looks] of the first path among `gaps` [looks, paths].

    `spent` [looks] rises to 1 at most. The p-value never rises from one look to the next, and
    under the null hypothesis it ever falls to a or below with a probability of at most a. It is
    rounded up to the next of `_LEVELS`.
    """
    paths = gaps.shape[1]
    reached = np.ones(paths)
    p_values = np.empty(len(gaps))
    for look, (gap, share) in enumerate(zip(gaps, spent, strict=True)):
        room = np.floor(_LEVELS * share * paths + 1e-9).astype(np.int64)
        bars = _find_bars(gap, reached, room)
        # The lowest of the levels whose bar the path passes. Bars rise as levels fall.
        passed = np.searchsorted(bars, gap, side="left")
        found = np.where(passed > 0, _LEVELS[np.maximum(passed, 1) - 1], 1.0)
        reached = np.minimum(reached, found)
        p_values[look] = reached[0]
    return p_values


def _find_bars(gap: Floats, reached: Floats, room: npt.NDArray[np.int64]) -> Floats:
    """Return for each level the bar that a path must exceed, so that no more than `room` pass.

    Those that reached the level at an earlier look take their room. A stricter level has no lower
    bar than a laxer one.
    """
    order = np.argsort(-gap, kind="stable")
    ranked, before = gap[order], reached[order]
    # Without room nobody passes.
    bars = np.full(len(_LEVELS), np.inf)
    for i in np.flatnonzero(room):
        fresh = np.cumsum(before > _LEVELS[i])
        free = room[i] - (len(before) - fresh[-1])
        # The first path that finds no room: whoever ties with it finds none either.
        first = int(np.searchsorted(fresh, max(free, 0), side="right"))
        bars[i] = ranked[first] if first < len(ranked) else -1.0
    return np.maximum.accumulate(bars)
