"""Confidence intervals of judge scores, and Holm's adjustment; no I/O.

A node's score over a window is its macro pass@1: the unweighted mean over datasets of the share of
questions that the node solved. With only one dataset, the score equals the share in this dataset,
so `macro_intervals` also computes the 95 % intervals of single shares.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

CONFIDENCE = 0.95
# A positive placeholder where a quantile is not used.
_LEAST = 1e-12

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]


def student_quantile(freedom: float) -> float:
    """Return the .975 quantile of Student's t distribution at `freedom` > 0 degrees of freedom."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def effective_n(cells: Mapping[str, tuple[int, int]]) -> float:
    """Return the number of questions of one dataset that would give the same precision as `cells`.

    `cells` maps each dataset to (correct, n). Datasets with n = 0 are ignored. If none is left, the
    result is 0. If k datasets are left, each has the weight w = 1/k, and the result is the smaller
    of two numbers:

    - Kish's effective sample size 1 / sum(w² / n) (L. Kish, Survey Sampling, 1965). It is the sum
      of all n if the datasets have equally many questions, otherwise less.
    - m (1 - m) / sum(w² p (1 - p) / n). Here p is a dataset's share of right answers, and m is the
      mean of these shares. This number can be the smaller one if p is nearer to 1/2 in datasets
      with few questions, because the score then varies more. Each p is computed with two additional
      correct and two additional wrong answers (A. Agresti, B. A. Coull, The American Statistician
      52, 1998), because a share of 0 or 1 would have no variance.
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
    """Return the lower and upper ends of the 95 % intervals of macro scores, in [0, 1].

    `scores` are fractions; `effective` has the `effective_n` > 0 of each score.

    Each is Clopper and Pearson's interval (Biometrika 26, 1934), with the effective n in place of a
    count. For a score s, its ends are the .025 quantile of Beta(s·n, (1 - s)·n + 1) and the .975
    quantile of Beta(s·n + 1, (1 - s)·n). The coverage is at least 95 % for one dataset, and for
    several with equally many questions. With unequal numbers of questions the coverage is
    approximate (`docs/statistics.md` has the reasons and figures). Jeffreys' interval is a tenth
    narrower at 50 questions and a fortieth at 500, but its coverage is .87 to .99.
    """
    share = np.asarray(scores, dtype=np.float64)
    n = np.asarray(effective, dtype=np.float64)
    tail = (1 - CONFIDENCE) / 2
    solved, missed = share * n, (1 - share) * n
    # With nothing solved the interval starts at 0, and with everything solved it ends at 1; the
    # quantile's parameter would be 0 there.
    low = np.where(solved > 0, betaincinv(np.maximum(solved, _LEAST), missed + 1, tail), 0.0)
    high = np.where(missed > 0, betaincinv(solved + 1, np.maximum(missed, _LEAST), 1 - tail), 1.0)
    return np.minimum(low, share), np.maximum(high, share)


def macro_interval(score: float, effective: float) -> Interval:
    """Return the 95 % interval of one macro score; `effective` > 0 is its `effective_n`."""
    low, high = macro_intervals(score, effective)
    return float(low), float(high)


def adjust_by_holm(p_values: npt.ArrayLike, *, hypotheses: int) -> Floats:
    """Return the p-values adjusted by Holm's method for `hypotheses` tests, in the order given.

    `hypotheses` may be larger than the number of p-values. The missing p-values then count as 1,
    which corrects for testing only promising hypotheses. The adjustment is valid under any
    dependence of the tests (S. Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * (hypotheses - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
