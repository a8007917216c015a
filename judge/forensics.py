"""What the detections of cheap cheats share: Holm's adjustment and how p-values are written; pure.

The detections themselves are `copying` and `jumps`. Both report only what chance hardly makes,
and what they report is a statistic for people to judge, never a verdict.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Both detections err once in so many rounds of honest nodes, at most, if their models hold.
ALPHA = 0.001
_SMALLEST_SHOWN = 1e-300


def adjust_by_holm(p_values: ArrayLike, *, hypotheses: int) -> NDArray[np.float64]:
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


def choose_flagged(adjusted: NDArray[np.float64], alpha: float) -> Sequence[int]:
    """Return the places of the adjusted p-values of at most `alpha`, the smallest first."""
    order = np.argsort(adjusted, kind="stable")
    return [int(place) for place in order if adjusted[place] <= alpha]


def write_p(p_value: float) -> str:
    """Return a p-value as a sentence's end has it: `p = 3e-12`."""
    if p_value < _SMALLEST_SHOWN:
        return f"p < {_SMALLEST_SHOWN:.0e}"
    return f"p = {p_value:.1g}"
