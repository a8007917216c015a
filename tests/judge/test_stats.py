"""Intervals and ranks of judge scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats import rank_ranges, wilson_interval


def test_wilson_interval_matches_the_published_formula() -> None:
    # z = 1.959964, p = .25, n = 16: centre (p + z²/2n)/(1 + z²/n), half-width by hand.
    low, high = wilson_interval(4, 16)
    assert low == pytest.approx(0.1018, abs=5e-4)
    assert high == pytest.approx(0.4950, abs=5e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_holds_the_share_and_stays_in_the_unit_range(counts: tuple[int, int]) -> None:
    correct, n = counts
    low, high = wilson_interval(correct, n)
    assert 0 <= low <= correct / n + 1e-12
    assert correct / n - 1e-12 <= high <= 1


def test_overlapping_nodes_share_ranks() -> None:
    assert rank_ranges([(0.1, 0.3), (0.2, 0.4)]) == [(1, 2), (1, 2)]


def test_a_node_clearly_above_is_ranked_above() -> None:
    assert rank_ranges([(0.1, 0.3), (0.5, 0.7)]) == [(2, 2), (1, 1)]


def test_a_node_between_two_that_differ_may_hold_either_rank() -> None:
    assert rank_ranges([(0.0, 0.2), (0.15, 0.45), (0.4, 0.6)]) == [(2, 3), (1, 3), (1, 2)]


def test_touching_intervals_are_not_told_apart() -> None:
    assert rank_ranges([(0.1, 0.3), (0.3, 0.5)]) == [(1, 2), (1, 2)]
