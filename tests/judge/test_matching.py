"""How likely shared texts are."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from judge.matching import compute_tails, find_candidates


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 8))
def test_tails_match_the_sum_over_all_outcomes(chances: list[float], at_least: int) -> None:
    by_hand = sum(
        np.prod([c if hit else 1 - c for c, hit in zip(chances, outcome, strict=True)])
        for outcome in product((False, True), repeat=len(chances))
        if sum(outcome) >= at_least
    )
    tails = compute_tails(np.array([chances]), np.array([at_least]))
    assert tails == pytest.approx([by_hand], abs=1e-12)


def test_tails_far_below_rounding_are_exact() -> None:
    tails = compute_tails(np.full((1, 32), 0.05), np.array([31]))
    assert tails == pytest.approx([binom.sf(30, 32, 0.05)], rel=1e-9)
    assert tails[0] < 1e-35


def test_pairs_that_share_few_texts_are_no_candidates() -> None:
    texts = np.array([[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 5, 6], [-1, -1, -1, 7]])
    assert find_candidates(texts).tolist() == [[0, 1]]


def test_missing_answers_are_not_shared() -> None:
    assert find_candidates(np.full((4, 8), -1)).size == 0


def test_nodes_alike_meet_in_groups_too_large_for_all_pairs() -> None:
    # One text of three on each question: groups of some 130 nodes, and the two stand far apart.
    texts = np.random.default_rng(7).integers(0, 3, size=(400, 32))
    texts[311] = texts[42]
    assert [42, 311] in find_candidates(texts).tolist()
