"""The intervals of judge scores; pure.

A node's score over a window is a macro pass@1, the plain mean of its shares in several datasets;
a share of one dataset is the simplest case. Both get the interval of `macro_intervals`, at 95 %.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

CONFIDENCE = 0.95
# Any number above 0 where a quantile is not used.
_LEAST = 1e-12

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]


def student_quantile(freedom: float) -> float:
    """Return Student's t quantile of the interval at `freedom` > 0 degrees of freedom."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def effective_n(cells: Mapping[str, tuple[int, int]]) -> float:
    """Return how many questions of one kind would measure as well as these cells do.

    `cells` maps each dataset to (correct, n); datasets with n = 0 are left out, and without any
    question the answer is 0. The score weighs the k datasets that are left equally, w = 1/k, so
    this is Kish's effective sample size 1 / sum(w² / n) (L. Kish, Survey Sampling, 1965): the sum
    of all n where the datasets have equally many questions, and less where they do not.
    """
    sizes = [n for _, n in cells.values() if n > 0]
    if not sizes:
        return 0.0
    return len(sizes) ** 2 / sum(1 / n for n in sizes)


def macro_intervals(scores: npt.ArrayLike, effective: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the intervals of macro scores, in [0, 1].

    `scores` are fractions and `effective` their `effective_n` > 0, element by element.

    Clopper and Pearson's interval (Biometrika 26, 1934) with Kish's n in place of a count: the
    quantiles of Beta(s·n, (1 - s)·n + 1) and Beta(s·n + 1, (1 - s)·n). For one dataset it covers
    95 % at least, whatever the share. For several it does so in all cases that were tried, because
    shares that differ vary less than equal ones with the same mean: `docs/statistics.md` has the
    figures. Jeffreys' interval is a tenth narrower at 50 questions and a fortieth at 500, and
    covers .87 to .99: least where most questions are of one dataset, and where nearly none or
    nearly all are solved.
    """
    share = np.asarray(scores, dtype=np.float64)
    n = np.asarray(effective, dtype=np.float64)
    tail = (1 - CONFIDENCE) / 2
    solved, missed = share * n, (1 - share) * n
    # With nothing solved the interval begins at 0, and with everything it ends at 1: there the
    # quantile's parameter would be 0.
    low = np.where(solved > 0, betaincinv(np.maximum(solved, _LEAST), missed + 1, tail), 0.0)
    high = np.where(missed > 0, betaincinv(solved + 1, np.maximum(missed, _LEAST), 1 - tail), 1.0)
    return np.minimum(low, share), np.maximum(high, share)


def macro_interval(score: float, effective: float) -> Interval:
    """Return the interval of one macro score, or of a share of `effective` questions."""
    low, high = macro_intervals(score, effective)
    return float(low), float(high)


def adjust_by_holm(p_values: npt.ArrayLike, *, hypotheses: int) -> Floats:
    """Return the p-values adjusted for `hypotheses` tests, in the order given.

    There may be more hypotheses than p-values: those that were not looked at count as p = 1, so
    that looking at promising ones only is paid for. Holds whatever depends on what (S. Holm,
    Scandinavian Journal of Statistics 6, 1979).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * (hypotheses - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
