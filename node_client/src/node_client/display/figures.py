"""Numbers as a person reads them at a glance. Pure."""

from collections.abc import Sequence
from datetime import datetime
from math import sqrt
from statistics import fmean, variance

BARS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 32
# Fewer steps than this tell no direction; two halves of them give an error of the mean.
TREND_STEPS = 20
# How many standard errors apart two halves of the curve must be to be called different.
SURE = 2.0


def sparkline(values: Sequence[float], *, width: int = CURVE_WIDTH) -> str:
    """Draw values in [0, 1] as at most `width` bars; each is the mean of neighbouring values."""
    values = list(values)
    width = min(width, len(values))
    bars = []
    for place in range(width):
        start, end = place * len(values) // width, (place + 1) * len(values) // width
        bars.append(BARS[min(int(fmean(values[start:end]) * len(BARS)), len(BARS) - 1)])
    return "".join(bars)


def describe_trend(values: Sequence[float]) -> str:
    """Say where values go: the later half against the earlier one, beyond their noise.

    Returns `rising`, `falling` or `steady`, and nothing for fewer than TREND_STEPS values.
    """
    values = list(values)
    if len(values) < TREND_STEPS:
        return ""
    middle = len(values) // 2
    earlier, later = values[:middle], values[middle:]
    difference = fmean(later) - fmean(earlier)
    error = sqrt(variance(earlier) / len(earlier) + variance(later) / len(later))
    if abs(difference) <= SURE * error:
        return "steady"
    return "rising" if difference > 0 else "falling"


def describe_bytes(size: int) -> str:
    """Return a size in MiB or GiB, as system monitors show it."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def describe_rank(rank: tuple[int, int], *, ranked: int | None) -> str:
    """Return a rank or a range of ranks, and of how many if that is known."""
    low, high = rank
    place = f"{low}" if low == high else f"{low}–{high}"
    return place if ranked is None else f"{place} of {ranked:,}"


def describe_age(moment: datetime, *, now: datetime) -> str:
    """Say how long ago a moment was."""
    return f"{describe_span((now - moment).total_seconds())} ago"


def count_down(moment: str, *, now: datetime) -> str:
    """Return the time until a moment (ISO 8601), 0:00 when it is past."""
    return describe_span((datetime.fromisoformat(moment) - now).total_seconds())


def describe_span(seconds: float) -> str:
    """Return a time span as minutes and seconds, or as hours and minutes."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes}:{rest:02d}"
