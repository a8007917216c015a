"""When a node's declarations count; no I/O.

A node declares which of its rollouts are informative, and a worker checks some of these
declarations. The verifiers are deterministic, so an honest node is rarely wrong. Checks are counted
in windows of WINDOW checks. A new window begins when the last one is full or declarations lapse.

- While a node's declarations count, they lapse as soon as the share of false ones in the window is
  significantly above TOLERANCE. This is tested after each check, with a one-sided exact binomial
  test at the level SIGNIFICANCE.
- After they have lapsed, they count again after a full window with a share of at most TOLERANCE.

For example, declarations lapse if the first three of a window are false. If 1 % of a node's
declarations are false, they lapse in a window with a probability of 5 in a million; if 50 % are
false, they lapse after 8 checks on average.
"""

from dataclasses import dataclass

TOLERANCE = 0.05
SIGNIFICANCE = 0.001
WINDOW = 64


@dataclass(frozen=True)
class Trust:
    """Whether a node's declarations have lapsed, and the counts of the current window of checks.

    `checked` is the number of declarations checked in this window so far; it is less than WINDOW.
    `false` is the number of false ones among them.
    """

    checked: int
    false: int
    lapsed: bool


def count_check(trust: Trust, *, is_false: bool) -> Trust:
    """Return the state after one more check of a declaration.

    `is_false` is whether the check found the declaration false.
    """
    checked, false = trust.checked + 1, trust.false + is_false
    if not trust.lapsed and is_significant(false, checked):
        return Trust(0, 0, lapsed=True)
    if checked < WINDOW:
        return Trust(checked, false, trust.lapsed)
    return Trust(0, 0, lapsed=trust.lapsed and false > TOLERANCE * checked)


def is_significant(false: int, checked: int) -> bool:
    """Return whether the share of false declarations is significantly above TOLERANCE.

    `checked` is the number of declarations, and `false` the number of false ones among them. The
    test is a one-sided exact binomial test at the level SIGNIFICANCE.
    """
    if false <= TOLERANCE * checked:
        return False
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import binomtest

    p_value = binomtest(false, checked, TOLERANCE, alternative="greater").pvalue
    return bool(p_value < SIGNIFICANCE)
