"""What the detections of cheap cheats share: what is flagged and how p-values are written; pure.

The detections themselves are `copying` and `jumps`. Both report only what chance hardly makes,
and what they report is a statistic for people to judge, never a verdict.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Score jumps are flagged in one of 1,000 rounds of honest nodes at most, if their model holds.
ALPHA = 0.001
_SMALLEST_SHOWN = 1e-300


def choose_flagged(adjusted: NDArray[np.float64], alpha: float) -> Sequence[int]:
    """Return the places of the adjusted p-values of at most `alpha`, the smallest first."""
    order = np.argsort(adjusted, kind="stable")
    return [int(place) for place in order if adjusted[place] <= alpha]


def write_p(p_value: float) -> str:
    """Return a p-value as a sentence's end has it: `p = 3e-12`."""
    if p_value < _SMALLEST_SHOWN:
        return f"p < {_SMALLEST_SHOWN:.0e}"
    return f"p = {p_value:.1g}"
