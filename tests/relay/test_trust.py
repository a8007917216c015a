"""Trust in declarations: it lapses after many false ones and returns after a clean window."""

from functools import reduce
from math import comb
from random import Random

import pytest

from swarm_web.relay.trust import WINDOW, Trust, is_significant, weigh

FRESH = Trust(checked=0, false=0, lapsed=False)
LAPSED = Trust(checked=0, false=0, lapsed=True)


def after(trust: Trust, *found: bool) -> Trust:
    """Return the trust after checks; True stands for a false declaration."""
    return reduce(lambda known, is_false: weigh(known, is_false=is_false), found, trust)


def found(share: float, *, checks: int, seed: int) -> list[bool]:
    random = Random(seed)
    return [random.random() < share for _ in range(checks)]


def test_declarations_lapse_after_three_false_ones_in_a_row() -> None:
    assert not after(FRESH, True, True).lapsed
    assert after(FRESH, True, True, True) == LAPSED


@pytest.mark.parametrize("checked", [1, 20, 64])
def test_share_within_the_tolerance_is_not_significant(checked: int) -> None:
    assert not is_significant(int(0.05 * checked), checked)


def test_significance_is_that_of_the_exact_binomial_test() -> None:
    assert sum(comb(32, k) * 0.05**k * 0.95 ** (32 - k) for k in range(7, 33)) < 0.001
    assert sum(comb(32, k) * 0.05**k * 0.95 ** (32 - k) for k in range(6, 33)) > 0.001
    assert is_significant(7, 32)
    assert not is_significant(6, 32)


def test_declarations_that_are_rarely_false_do_not_lapse() -> None:
    for seed in range(20):
        assert not after(FRESH, *found(0.01, checks=500, seed=seed)).lapsed


def test_declarations_that_are_half_false_lapse_within_a_window() -> None:
    for seed in range(20):
        assert any(
            after(FRESH, *found(0.5, checks=WINDOW, seed=seed)[:checks]).lapsed
            for checks in range(WINDOW + 1)
        )


def test_counts_are_reset_after_a_window_without_evidence() -> None:
    assert after(FRESH, True, *[False] * (WINDOW - 1)) == FRESH


def test_lapsed_declarations_return_after_a_clean_window() -> None:
    assert after(LAPSED, *[False] * (WINDOW - 1)).lapsed
    assert after(LAPSED, *[False] * WINDOW) == FRESH


def test_lapsed_declarations_do_not_return_after_a_window_above_the_tolerance() -> None:
    assert after(LAPSED, *[True] * 3, *[False] * (WINDOW - 3)) == FRESH
    assert after(LAPSED, *[True] * 4, *[False] * (WINDOW - 4)) == LAPSED
