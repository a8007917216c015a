"""The round from which two arms differ, found by a simultaneous test of all rounds.

Testing every round by itself would find a difference somewhere by chance alone. So the test flips
the signs of the curves of differences, and compares the observed deviations with the largest
deviation over all rounds after each flip (P. H. Westfall, S. S. Young, Resampling-Based Multiple
Testing, 1993: max-T). A flip changes the sign of a whole curve, so successive rounds may depend on
each other.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from node_client.lab.statistics import LEVEL, Floats, sign_flips

# Number of rounds in the moving average of a curve.
WINDOW = 10


@dataclass(frozen=True)
class Onset:
    """The mean difference of n pairs of curves, and the rounds in which it is significant.

    `difference` and `band` have a value for each round. A difference outside ± `band` is
    significant at .05, adjusted for testing all rounds. `first` is the index of the first
    significant round, and `stays` the first index from which all rounds are significant. Each is
    None if there is no such round.
    """

    difference: Floats
    band: Floats
    first: int | None
    stays: int | None


def moving_average(curves: Floats, window: int = WINDOW) -> Floats:
    """Return the averages of each `window` successive values along the last axis.

    The result is shorter by window - 1: its value i is the average of the values i to
    i + window - 1. Curves that are shorter than the window are averaged as a whole.
    """
    window = min(window, curves.shape[-1])
    windows = np.lib.stride_tricks.sliding_window_view(curves, window, axis=-1)
    return np.asarray(windows.mean(axis=-1))


def place_for_good(reached: npt.NDArray[np.bool_]) -> int | None:
    """Return the first index from which all values are true.

    Returns None if the last value is false, or if there are no values.
    """
    missed = np.flatnonzero(~reached)
    first = int(missed[-1]) + 1 if len(missed) else 0
    return first if first < len(reached) else None


def find_onset(differences: Floats) -> Onset:
    """Return the `Onset` of n pairs of curves from their `differences` (n, rounds).

    The statistic of a round is the mean of the round's differences divided by their root mean
    square. This is an increasing function of Student's t, and flipping signs does not change the
    root mean square.
    """
    mean = differences.mean(axis=0)
    size = np.sqrt(np.mean(differences**2, axis=0))
    scale = np.where(size > 0, size, 1.0)
    signs = sign_flips(len(differences))
    largest = np.sort(np.max(np.abs(signs @ (differences / scale)) / len(differences), axis=1))
    # The number of sign patterns that may deviate as much as what is called significant.
    allowed = int(LEVEL * len(signs))
    band = largest[-1 - allowed] * size
    beyond = np.abs(mean) > band * (1 + 1e-9)
    first = int(beyond.argmax()) if beyond.any() else None
    return Onset(mean, band, first=first, stays=place_for_good(beyond))
