"""Helpers of `copying` and `jumps`: they choose which findings to flag, and format p-values.

Both modules report only what is very unlikely by chance. A finding is a statistic for people to
assess, never a verdict.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SMALLEST_SHOWN = 1e-300


def choose_flagged(adjusted: NDArray[np.float64], alpha: float) -> Sequence[int]:
    """Return the indices of the adjusted p-values up to `alpha`, the smallest first."""
    order = np.argsort(adjusted, kind="stable")
    return [int(i) for i in order if adjusted[i] <= alpha]


def format_p_value(p_value: float) -> str:
    """Return a p-value as text, such as `p = 3e-12`."""
    if p_value < _SMALLEST_SHOWN:
        return f"p < {_SMALLEST_SHOWN:.0e}"
    return f"p = {p_value:.1g}"
