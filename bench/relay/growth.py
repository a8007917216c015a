"""Test whether memory grows, by fitting a straight line to readings of the memory.

Memory is flat if the growth in ten minutes, at the upper bound of its 95 % interval, is below 2 %
of the memory. The limit is at least 2 MB, because the allocators of small processes take and return
pages by the megabyte.

The line is fitted by least squares to the last two thirds of the readings, because pools fill and
caches warm up in the first third. Successive readings are correlated, so n readings count as only
n (1 - r) / (1 + r) independent readings in the standard error. Here r is the correlation of
successive residuals (Bayley and Hammersley 1946, for a first-order process).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

SPAN_S = 600.0
MAX_SHARE = 0.02
MAX_BYTES = 2_000_000
WARM_UP = 1 / 3
_MIN_READINGS = 5
# A limit, because with a higher correlation a few readings would give no information.
_MAX_CORRELATION = 0.9


@dataclass(frozen=True)
class Growth:
    """The growth of memory, in bytes per SPAN_S seconds: the slope of the fitted line.

    `low` and `high` are the bounds of its 95 % interval. `at_end` is the line's value at the time
    of the last reading, in bytes.
    """

    at_end: float
    bytes: float
    low: float
    high: float

    @property
    def is_flat(self) -> bool:
        """Whether `high` is below 2 % of the memory, or below 2 MB if that is more."""
        return self.high < max(MAX_SHARE * self.at_end, MAX_BYTES)


def fit_growth(seconds: Sequence[float], sizes: Sequence[float]) -> Growth:
    """Return the growth fitted to the memory readings `sizes`, in bytes, at the times `seconds`.

    The first third of the readings is ignored. Raises ValueError if fewer than five remain.
    """
    skipped = int(len(seconds) * WARM_UP)
    times, values = np.asarray(seconds[skipped:], float), np.asarray(sizes[skipped:], float)
    if len(times) < _MIN_READINGS:
        raise ValueError(f"{len(times)} readings after the first third; take {_MIN_READINGS}")
    slope, intercept = np.polyfit(times, values, deg=1)
    residuals = values - (intercept + slope * times)
    effective = max(3.0, len(times) * _share_of_independent(residuals))
    spread = float(((times - times.mean()) ** 2).sum())
    error = (float(residuals @ residuals) / (effective - 2) / spread) ** 0.5
    half = float(t.ppf(0.975, effective - 2)) * error
    return Growth(
        at_end=float(intercept + slope * times[-1]),
        bytes=SPAN_S * float(slope),
        low=SPAN_S * (float(slope) - half),
        high=SPAN_S * (float(slope) + half),
    )


def _share_of_independent(residuals: np.ndarray) -> float:
    """Return what fraction of the readings counts as independent, from their correlation."""
    total = float(residuals @ residuals)
    if total == 0:
        return 1.0
    correlation = float(residuals[1:] @ residuals[:-1]) / total
    bounded = min(max(correlation, 0.0), _MAX_CORRELATION)
    return (1 - bounded) / (1 + bounded)
