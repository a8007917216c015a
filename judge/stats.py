"""The statistics of judge scores; pure.

Intervals are Wilson's score intervals at 95 % (E. B. Wilson, JASA 22, 1927), which keep their
coverage at small n and extreme shares where the textbook interval does not.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

from scipy.stats import binomtest

CONFIDENCE = 0.95

Interval = tuple[float, float]


@lru_cache(maxsize=4096)
def wilson_interval(correct: int, n: int) -> Interval:
    """Return the interval of a share of `correct` in `n` > 0 questions, in [0, 1]."""
    interval = binomtest(correct, n).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def rank_ranges(intervals: Sequence[Interval]) -> list[tuple[int, int]]:
    """Return each competitor's (best, worst) rank, given their score intervals.

    The best rank is 1 + the number of others whose whole interval lies above; the worst one is
    the number of all minus those whose whole interval lies below. Competitors whose intervals
    overlap cannot be told apart and share ranks: conservative, as LMArena ranks models.
    """
    lows = sorted(low for low, _ in intervals)
    highs = sorted(high for _, high in intervals)
    total = len(intervals)
    return [
        (1 + total - bisect_right(lows, high), total - bisect_left(highs, low))
        for low, high in intervals
    ]
