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
    question the answer is 0. The score m weighs the k datasets that are left equally, w = 1/k.
    With equal shares everywhere that is Kish's effective sample size 1 / sum(w² / n) (L. Kish,
    Survey Sampling, 1965): the sum of all n where the datasets have equally many questions, and
    less where they do not. Where the share that is solved is in a dataset with few questions, the
    score varies more than that: then it is m (1 - m) / sum(w² p (1 - p) / n), if that is less. The
    shares p and their mean m are taken with two right and two wrong answers more (A. Agresti,
    B. A. Coull, The American Statistician 52, 1998), as a share of 0 or 1 would have no variance.
    """
    counts = [(correct, n) for correct, n in cells.values() if n > 0]
    if not counts:
        return 0.0
    shares = [(correct + 2) / (n + 4) for correct, n in counts]
    mean = sum(shares) / len(counts)
    spread = sum(p * (1 - p) / n for p, (_, n) in zip(shares, counts, strict=True))
    kish = sum(1 / n for _, n in counts)
    return float(len(counts) ** 2 * min(1 / kish, mean * (1 - mean) / spread))


def macro_intervals(scores: npt.ArrayLike, effective: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the intervals of macro scores, in [0, 1].

    `scores` are fractions and `effective` their `effective_n` > 0, element by element.

    Clopper and Pearson's interval (Biometrika 26, 1934) with the effective n in place of a count:
    the quantiles of Beta(s·n, (1 - s)·n + 1) and Beta(s·n + 1, (1 - s)·n). For one dataset it
    covers 95 % at least, whatever the share. For several datasets with equally many questions it
    does so too, because shares that differ vary less than equal ones with the same mean. With
    unequal numbers it is approximate: `docs/statistics.md` has the figures. Jeffreys' interval is
    a tenth narrower at 50 questions and a fortieth at 500, and covers .87 to .99.
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
