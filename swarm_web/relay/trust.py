"""When a node's declarations count; pure.

A node declares which of its rollouts are informative, and some of these declarations are checked.
The verifiers are deterministic, so an honest node is rarely wrong. Checks are counted in windows:

- While a node's declarations count, they lapse as soon as the share of false ones in the window is
  significantly above TOLERANCE. This is tested after each check, with a one-sided exact binomial
  test at the level SIGNIFICANCE.
- After they have lapsed, they count again after a full window with a share of at most TOLERANCE.

A window has WINDOW checks; a new one begins when it is full or when declarations lapse. At the
start of a window three false declarations in a row make them lapse. A node with 1 % of false
declarations lapses in a window with a probability of 5 in a million; one with 50 % lapses after 8
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


def count_check(trust: Trust, *, is_false: bool) -> Trust:
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
