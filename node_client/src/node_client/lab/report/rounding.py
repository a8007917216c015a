"""Numbers as a report gives them: six significant digits, far more than any of them means.

Machines add in different orders, which changes the last of a float's sixteen digits.
"""

from collections.abc import Iterable


def rounded(value: float) -> float:
    """Return a number with six significant digits."""
    return float(f"{value:.6g}")


def all_rounded(values: Iterable[float]) -> list[float]:
    """Return numbers with six significant digits."""
    return [rounded(value) for value in values]
