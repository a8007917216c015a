"""How figures of the lab are written, as its reports write them: gains, rewards, bytes; pure.

The filters of `templatetags/lab.py` isolate them where text runs from right to left.
"""

from collections.abc import Callable

from swarm_web.lab.shape import LabComparison

NONE = "–"
_MINUS = "\u2212"
_THIN = "\u202f"
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def write_gain(ratio: float | None) -> str:
    """Write a ratio as a change: `+94 %` for 1.94."""
    if ratio is None:
        return NONE
    return f"{_sign(ratio - 1)}{abs(ratio - 1):.0%}".replace("%", f"{_THIN}%")


def write_amount(value: float | None) -> str:
    """Write a number with three significant digits, large ones with their thousands apart."""
    if value is None:
        return NONE
    if value < 0:
        return _MINUS + write_amount(-value)
    if value >= 1000:
        return f"{value:,.0f}".replace(",", _THIN)
    text = f"{value:.3g}"
    text = text if "e" not in text else f"{value:.1e}"
    return text.removeprefix("0") if text.startswith("0.") else text


def write_signed(value: float) -> str:
    """Write a difference with its sign."""
    return _sign(value) + write_amount(abs(value))


def write_bytes(count: float) -> str:
    """Write a number of bytes in the largest unit of which there is one."""
    for size, unit in _SIZES:
        if count >= size:
            return f"{write_amount(count / size)}{_THIN}{unit}"
    return f"{count:.0f}{_THIN}B"


def write_change(found: LabComparison) -> str:
    """Write how much an arm differs: its gain, or the difference where the other earned nothing."""
    return write_signed(found.difference) if found.gain is None else write_gain(found.gain)


def write_change_ends(found: LabComparison) -> tuple[str, str] | None:
    """Write the ends of the interval of what `write_change` writes; None without one."""
    if found.gain is None:
        return _write_ends(found.difference_low, found.difference_high, write_signed)
    return _write_ends(found.gain_low, found.gain_high, write_gain)


def _write_ends(
    low: float | None, high: float | None, write: Callable[[float], str]
) -> tuple[str, str] | None:
    return None if low is None or high is None else (write(low), write(high))


def _sign(value: float) -> str:
    return _MINUS if value < 0 else "+"
