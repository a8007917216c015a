"""Numbers of a report: rounding, and text for the page, sentences and summary.

Machines add numbers in different orders, which changes the last digits of a float. Rounding to six
significant digits, more than a result needs, gives the same report on all of them. The text of a
missing number (None) is a dash.
"""

from collections.abc import Iterable, Sequence

import numpy as np

NONE = "–"


def format_gain(gain: float | None) -> str:
    """Return a ratio as a change: +94 % for 1.94, a dash for None."""
    return NONE if gain is None else f"{_sign(gain - 1)}{abs(gain - 1) * 100:.0f} %"


def format_gain_interval(low: float | None, high: float | None) -> str:
    """Return a ratio's interval as changes, such as +10 % to +94 % for 1.1 to 1.94.

    If an end is None, return a dash.
    """
    return NONE if low is None or high is None else f"{format_gain(low)} to {format_gain(high)}"


def format_p(p: float) -> str:
    """Return a p-value as text with up to two significant digits: 1, .031, .2, or < .001."""
    return "1" if p >= 0.995 else _without_zero(f"{p:.2g}") if p >= 0.001 else "< .001"


def format_p_is(p: float) -> str:
    """Return a p-value for use in a sentence: p = .031, or p < .001."""
    text = format_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def format_number(value: float | None) -> str:
    """Return a number with at most 3 significant digits, or as an integer from 1,000 on.

    None gives a dash.
    """
    if value is None:
        return NONE
    if value < 0:
        return _sign(value) + format_number(-value)
    if value >= 999.5:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return _without_zero(text if "e" not in text else f"{value:.1e}")


def format_signed(value: float | None) -> str:
    """Return a difference with its sign, or a dash for None."""
    return NONE if value is None else _sign(value) + format_number(abs(value))


def format_interval(low: float | None, high: float | None) -> str:
    """Return an interval as text, such as "1.2 to 3.4"; a dash if a bound is None."""
    return NONE if low is None or high is None else f"{format_number(low)} to {format_number(high)}"


def format_bytes(count: float) -> str:
    """Return a number of bytes with a unit."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{format_number(count / size)} {unit}"
    return f"{count:.0f} B"


def _sign(value: float) -> str:
    return "−" if value < 0 else "+"


def _without_zero(text: str) -> str:
    """Return a fraction without its leading zero: .5 for 0.5."""
    return text.removeprefix("0") if text.startswith("0.") else text


def rounded(value: float) -> float:
    """Return a number rounded to six significant digits."""
    return float(f"{value:.6g}")


def all_rounded(values: Iterable[float]) -> list[float]:
    """Return numbers rounded to six significant digits."""
    return [rounded(value) for value in values]


def round_ends(interval: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Return the ends of an interval, rounded to six significant digits; two Nones for None."""
    return (None, None) if interval is None else (rounded(interval[0]), rounded(interval[1]))


def rounded_median(values: Sequence[float | None]) -> float | None:
    """Return the median, rounded to six significant digits; None counts as infinity.

    The result is None if the median is infinite.
    """
    never = float("inf")
    median = float(np.median([never if value is None else value for value in values]))
    return rounded(median) if median < never else None


def spaced_places(count: int, *, most: int) -> list[int]:
    """Return `most` evenly spaced indices below `count`, or all of them if there are fewer.

    The first and the last index are included, so `most` must be at least 2.
    """
    places = np.linspace(0, count - 1, min(count, most))
    return [int(place) for place in np.unique(places.round())]
