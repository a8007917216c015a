"""When a node's declarations count; pure.

A node declares which of its rollouts are informative. Some of these are checked, and the verifiers
are deterministic, so an honest node is hardly ever wrong. Checks are counted in windows:

- While declarations count, they lapse as soon as the window's share of false ones is significantly
  above TOLERANCE: by an exact binomial test, one-sided, at SIGNIFICANCE, after each check.
- Once they have lapsed, they count again after a whole window in which that share is at most
  TOLERANCE.

A window is WINDOW checks, and a new one begins whenever one is full or a decision was made. At the
beginning of one, three false ones in a row are enough. A node that is wrong once in a hundred times
lapses in a window with a chance of 5 in a million; one that is wrong every other time, after 8
checks on average.
"""

from dataclasses import dataclass

TOLERANCE = 0.05
SIGNIFICANCE = 0.001
WINDOW = 64


@dataclass(frozen=True)
class Trust:
    """Checks of the window, the number of false ones, and whether declarations have lapsed."""

    checked: int
    false: int
    lapsed: bool


def weigh(trust: Trust, *, is_false: bool) -> Trust:
    """Return the trust after one more check."""
    checked, false = trust.checked + 1, trust.false + is_false
    if not trust.lapsed and is_significant(false, checked):
        return Trust(0, 0, lapsed=True)
    if checked < WINDOW:
        return Trust(checked, false, trust.lapsed)
    return Trust(0, 0, lapsed=trust.lapsed and false > TOLERANCE * checked)


def is_significant(false: int, checked: int) -> bool:
    """Return whether the false checks significantly exceed TOLERANCE."""
    if false <= TOLERANCE * checked:
        return False
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import binomtest

    p_value = binomtest(false, checked, TOLERANCE, alternative="greater").pvalue
    return bool(p_value < SIGNIFICANCE)
