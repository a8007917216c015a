"""A test over several seasons of whether sharing helps swarms, valid at every look; no I/O.

A season is one swarm, and anything that affected one of its arms alone, such as an outage or a
poisoned pool, is part of its difference. So the unit of the test is a season, not a node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from judge.statistics.comparison import Verdict, decide
from judge.statistics.randomisation import Floats, compute_p_values
from swarm_record.stats import CONFIDENCE, Interval

# The fewest seasons whose signs (2^6 = 64 ways) allow a two-sided p-value below ALPHA.
MIN_SEASONS = 6
# Each season from the sixth on multiplies the unspent error budget by this. So six seasons that all
# point the same way are enough, and most of the budget is spent in the next few seasons.
_UNSPENT_FACTOR = 0.3
# Up to fourteen seasons all sign flips are enumerated.
_MAX_PATHS = 2**14
_MIN_SPREAD = 1e-12


@dataclass(frozen=True)
class SeasonsClaim:
    """What several seasons show together about swarm and isolated nodes.

    `difference` is the mean of the seasons' differences swarm - isolated, as a score fraction; None
    without seasons. `interval` is its 95 % interval; None if there are fewer than two seasons, or
    if all differences are equal. `missing_seasons` is the number of further seasons that a test
    needs; until it is 0, `p_value` is None.
    """

    n_seasons: int
    difference: float | None
    interval: Interval | None
    p_value: float | None
    verdict: Verdict
    missing_seasons: int


def compare_seasons(differences: Mapping[str, float]) -> SeasonsClaim:
    """Return what the seasons' differences show together, tested by flipping their signs.

    `differences` has the difference swarm - isolated of each season, in the order in which the
    seasons ended. With fewer than MIN_SEASONS seasons, nothing is tested. The first test is made
    after MIN_SEASONS seasons, and another one after each further season. Each test is a *look*. It
    compares the sum of the differences with the sums for all combinations of their signs. With more
    than fourteen seasons, only 16,384 combinations are used, drawn with a fixed seed.

    The p-value is exact over all looks together under one assumption: without an effect of sharing,
    a season's difference d is as likely as -d. The interval is Student's 95 % interval. It is valid
    for one look only.
    """
    values = np.array(list(differences.values()), dtype=np.float64)
    missing = max(0, MIN_SEASONS - len(values))
    difference = float(values.mean()) if len(values) else None
    p_value, lead = (None, 0.0) if missing else _flip_signs(values)
    return SeasonsClaim(
        n_seasons=len(values),
        difference=difference,
        interval=_student_interval(values),
        p_value=p_value,
        verdict=decide(difference, p_value, lead=lead),
        missing_seasons=missing,
    )


def _flip_signs(values: Floats) -> tuple[float, float]:
    """Return the p-value of the sign-flip test after all looks, and a sum of differences.

    `values` has the difference of each season, at least MIN_SEASONS of them. There is a look after
    each season, the first after MIN_SEASONS. The sum is over the seasons up to the look at which
    the p-value first fell to the returned value.
    """
    sums = np.cumsum(_draw_signs(len(values)) * values, axis=1).T[MIN_SEASONS - 1 :].round(12)
    spent = 1 - np.power(_UNSPENT_FACTOR, np.arange(1, len(sums) + 1), dtype=np.float64)
    p_values = compute_p_values(np.abs(sums), spent=spent)
    return float(p_values[-1]), float(sums[np.argmin(p_values), 0])


def _draw_signs(seasons: int) -> Floats:
    """Return vectors of the signs 1 and -1, one per row: [paths, seasons]. The first row is all 1.

    If there are at most _MAX_PATHS such vectors, all are returned. Otherwise there are _MAX_PATHS
    rows, random except for the first.
    """
    if 2**seasons <= _MAX_PATHS:
        flipped = np.arange(2**seasons)[:, None] >> np.arange(seasons) & 1
    else:
        # Drawn season by season, so that another season does not change the earlier signs.
        rng = np.random.default_rng(0)
        flipped = rng.integers(0, 2, (seasons, _MAX_PATHS)).T
        flipped[0] = 0
    return np.where(flipped, -1.0, 1.0)


def _student_interval(values: Floats) -> Interval | None:
    """Return Student's 95 % interval of the mean; None for equal values or fewer than two."""
    from scipy.stats import ttest_1samp

    if len(values) < 2 or np.ptp(values) <= _MIN_SPREAD:
        return None
    interval = ttest_1samp(values, 0).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)
