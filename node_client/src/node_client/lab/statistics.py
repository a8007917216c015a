"""Significance of a difference between two arms: the sign-flip test and Holm's adjustment.

The unit of replication is a run, because the nodes of a run share rollouts, and its rounds depend
on each other. Runs of two arms with the same seed have the same streams of questions, so arms are
compared seed by seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

LEVEL = 0.05
# Up to this number of pairs all sign patterns are used, otherwise 2^_EXACT_PAIRS random ones.
_EXACT_PAIRS = 14
_RNG_SEED = 20_261_123
# Sums of the same numbers in a different order count as equal.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PairedTest:
    """The result of a sign-flip test of n paired differences.

    `p` is two-sided; `p_greater` is one-sided, for differences greater than zero. `least_p` is 2
    divided by the number of sign patterns. For up to 14 pairs all patterns are used, so no
    differences can give a smaller `p`.
    """

    p: float
    p_greater: float
    least_p: float


def sign_flips(pairs: int) -> Floats:
    """Return patterns of the signs 1 and -1 as rows, each with a sign for every pair.

    These are all 2^pairs patterns for up to 14 pairs, otherwise 2^14 random ones. The first row is
    all 1, which stands for the observed signs, so no p-value is zero.
    """
    if pairs <= _EXACT_PAIRS:
        rows = np.arange(2**pairs)
        bits = (rows[:, None] >> np.arange(pairs)) & 1
        return np.where(bits, -1.0, 1.0)
    rng = np.random.default_rng(_RNG_SEED)
    signs = np.where(rng.integers(2, size=(2**_EXACT_PAIRS, pairs)), -1.0, 1.0)
    signs[0] = 1.0
    return signs


def paired_test(differences: Floats) -> PairedTest:
    """Test n > 0 paired differences against the hypothesis that the two arms do not differ.

    Under this hypothesis, a difference and the same difference with the opposite sign are equally
    likely (R. A. Fisher, The Design of Experiments, 1935, section 21). The statistic is the sum of
    the differences. The one-sided p-value is the share of the sign patterns that give at least the
    observed sum; the two-sided p-value compares absolute values of sums.
    """
    signs = sign_flips(len(differences))
    sums = signs @ differences
    slack = _ROUNDING * float(np.abs(differences).sum())
    return PairedTest(
        p=float(np.mean(np.abs(sums) >= abs(sums[0]) - slack)),
        p_greater=float(np.mean(sums >= sums[0] - slack)),
        least_p=2 / len(signs),
    )


def holm(p_values: Sequence[float], *, of: int = 0) -> list[float]:
    """Return the p-values, in the same order, adjusted for several tests by Holm's method.

    The method is from S. Holm, Scand. J. Statistics 6, 1979. `of` is the number of planned tests.
    If it is less than the number of p-values, it has no effect.
    """
    adjusted = [0.0] * len(p_values)
    tests = max(of, len(p_values))
    highest = 0.0
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (tests - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
