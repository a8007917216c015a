"""Turns numbers and codes into readable text."""

from collections.abc import Sequence
from datetime import datetime
from math import sqrt
from statistics import fmean, variance

BARS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 32
# Minimum number of steps for a trend: fewer give no useful standard error of the mean of each half.
TREND_STEPS = 20
# Number of standard errors between two halves of the curve that counts as a difference.
TREND_ERRORS = 2.0
_REMARKS = {
    "too_few": "not ranked yet: too few of its questions count so far",
    "often_absent": "not ranked: it missed too many of the rounds that it was invited to",
    "base": "not ranked: an untrained model, shown for comparison",
    "quarantined": "not ranked: the operator took this node out of the ranks; ask there why",
}


def sparkline(values: Sequence[float]) -> str:
    """Return values in [0, 1] as a line of bars: one for each value, but at most CURVE_WIDTH.

    If there are more values, each bar shows the mean of a few successive values. Rewards of a
    plug-in may be outside [0, 1]: a lower mean or NaN has the lowest bar, a higher one the highest.
    """
    values = list(values)
    width = min(CURVE_WIDTH, len(values))
    bars = []
    for place in range(width):
        start, end = place * len(values) // width, (place + 1) * len(values) // width
        mean = max(0.0, min(fmean(values[start:end]), 1.0))
        bars.append(BARS[min(int(mean * len(BARS)), len(BARS) - 1)])
    return "".join(bars)


def describe_trend(values: Sequence[float]) -> str:
    """Return the trend of values: `rising`, `falling` or `steady`.

    It is `steady` if the means of the earlier and the later half differ by at most TREND_ERRORS
    standard errors of the difference. Otherwise it is `rising` if the later mean is higher, and
    `falling` if it is lower. Fewer than TREND_STEPS values give an empty text.
    """
    values = list(values)
    if len(values) < TREND_STEPS:
        return ""
    middle = len(values) // 2
    earlier, later = values[:middle], values[middle:]
    difference = fmean(later) - fmean(earlier)
    error = sqrt(variance(earlier) / len(earlier) + variance(later) / len(later))
    if abs(difference) <= TREND_ERRORS * error:
        return "steady"
    return "rising" if difference > 0 else "falling"


def describe_bytes(size: int) -> str:
    """Return a size in MiB or GiB, as system monitors show it."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def describe_rank(rank: tuple[int, int], *, ranked: int | None) -> str:
    """Return a rank (best, worst) as text, with the number of ranked nodes if it is known."""
    low, high = rank
    place = f"{low}" if low == high else f"{low}–{high}"
    return place if ranked is None else f"{place} of {ranked:,}"


def describe_age(moment: datetime, *, now: datetime) -> str:
    """Return the time since a moment as text, such as `2:30 ago`."""
    return f"{describe_duration((now - moment).total_seconds())} ago"


def count_down(moment: str, *, now: datetime) -> str:
    """Return the time until a moment (ISO 8601) as text; `0:00` for a past one."""
    return describe_duration((datetime.fromisoformat(moment) - now).total_seconds())


def describe_duration(seconds: float) -> str:
    """Return a time span as `minutes:seconds`, or from one hour on as hours and minutes."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes}:{rest:02d}"


def explain_remark(remark: str) -> str:
    """Return why a node is not ranked, in words; an empty text for an empty `remark`.

    `remark` is a code of the protocol (`NodeStanding.remark`); an unknown one is shown as it is.
    """
    return _REMARKS.get(remark, f"not ranked: {remark}") if remark else ""
