"""The intervals of judge scores; pure.

A share of one kind of question gets Wilson's score interval (E. B. Wilson, JASA 22, 1927). A
node's score over a window is a macro pass@1, the plain mean of its shares in several datasets, and
gets the interval of `macro_intervals`. All intervals are at 95 %.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

CONFIDENCE = 0.95
# Jeffreys' prior is Beta(1/2, 1/2).
_PRIOR = 0.5

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=4096)
def wilson_interval(correct: int, n: int) -> Interval:
    """Return the interval of a share of `correct` in `n` > 0 questions, in [0, 1]."""
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import binomtest

    # The interval does not depend on what is tested, and testing the share itself is cheapest.
    tested = binomtest(correct, n, p=correct / n)
    interval = tested.proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


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

    Jeffreys' equal-tailed interval: the quantiles of Beta(s·n + 1/2, (1 - s)·n + 1/2), reaching 0
    where s is 0 and 1 where it is 1 (L. D. Brown, T. T. Cai, A. DasGupta, Statistical Science
    16(2), 2001, section 3.1.3), with Kish's n in place of a count. Its coverage:

        p (mean)                            .02           .3            .9
        n (all questions)                50    500     50    500     50    500
        one dataset, exact              .982  .946    .957  .949    .942  .947
        8 even datasets, one p          .982  .946    .953  .951    .942  .947
        8 even datasets, p from 0 to 2p .981  .947    .965  .970    .947  .953

    where .9 spreads from .8 to 1. Of the candidates at these points, Wilson's interval and the
    uniform prior's miss (.922 at p = .02, n = 50); mid-P and Clopper-Pearson hold, but are wider;
    Beta(1/3, 1/3) holds and is narrower, but averages only .947 over p from .005 to .995 at n = 50,
    where Jeffreys' averages .950. As with any rule but Clopper-Pearson's there are dips between:
    the deepest is .884, at p = .049 and n = 50.

    What Kish's n cannot know is where a node is uncertain. With six times as many questions in one
    dataset as in another, coverage falls to .91 where a node half solves the small datasets and
    fully the large ones, and rises to .99 in the opposite case.
    """
    share = np.asarray(scores, dtype=np.float64)
    n = np.asarray(effective, dtype=np.float64)
    tail = (1 - CONFIDENCE) / 2
    solved, missed = share * n + _PRIOR, (1 - share) * n + _PRIOR
    # The interval of a score at 0 or 1 begins there; anywhere else its ends hold the score anyway.
    low = np.minimum(betaincinv(solved, missed, tail), share)
    high = np.maximum(betaincinv(solved, missed, 1 - tail), share)
    return low, high


def macro_interval(score: float, effective: float) -> Interval:
    """Return the interval of one macro score, as `macro_intervals` does."""
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
