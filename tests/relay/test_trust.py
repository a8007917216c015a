"""When declarations count: many false ones end it soon, a clean window brings it back."""

from functools import reduce
from math import comb
from random import Random

import pytest

from swarm_web.relay.trust import WINDOW, Trust, count_check, is_significant

FRESH = Trust(checked=0, false=0, lapsed=False)
LAPSED = Trust(checked=0, false=0, lapsed=True)


def after(trust: Trust, *found: bool) -> Trust:
    """Return what follows from checks, True for each false declaration."""
    return reduce(lambda known, is_false: count_check(known, is_false=is_false), found, trust)


def found(share: float, *, checks: int, seed: int) -> list[bool]:
    random = Random(seed)
    return [random.random() < share for _ in range(checks)]


def test_three_false_declarations_in_a_row_are_enough() -> None:
    assert not after(FRESH, True, True).lapsed
    assert after(FRESH, True, True, True) == LAPSED


@pytest.mark.parametrize("checked", [1, 20, 64])
def test_a_share_within_the_tolerance_is_no_evidence(checked: int) -> None:
    assert not is_significant(int(0.05 * checked), checked)


def test_the_test_is_the_exact_binomial_one() -> None:
    assert sum(comb(32, k) * 0.05**k * 0.95 ** (32 - k) for k in range(7, 33)) < 0.001
    assert sum(comb(32, k) * 0.05**k * 0.95 ** (32 - k) for k in range(6, 33)) > 0.001
    assert is_significant(7, 32)
    assert not is_significant(6, 32)


def test_a_node_that_is_hardly_ever_wrong_keeps_its_declarations() -> None:
    for seed in range(20):
        assert not after(FRESH, *found(0.01, checks=500, seed=seed)).lapsed


def test_a_node_that_is_wrong_half_of_the_time_loses_them_within_a_window() -> None:
    for seed in range(20):
        assert any(
            after(FRESH, *found(0.5, checks=WINDOW, seed=seed)[:checks]).lapsed
            for checks in range(WINDOW + 1)
        )


def test_a_window_without_evidence_is_followed_by_a_new_one() -> None:
    assert after(FRESH, True, *[False] * (WINDOW - 1)) == FRESH


def test_a_clean_window_brings_them_back() -> None:
    assert after(LAPSED, *[False] * (WINDOW - 1)).lapsed
    assert after(LAPSED, *[False] * WINDOW) == FRESH


def test_a_window_above_the_tolerance_does_not_bring_them_back() -> None:
    assert after(LAPSED, *[True] * 3, *[False] * (WINDOW - 3)) == FRESH
    assert after(LAPSED, *[True] * 4, *[False] * (WINDOW - 4)) == LAPSED
