"""Probabilities of shared texts."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from judge.statistics import matching
from judge.statistics.matching import compare_pairs, compute_tails, find_candidates


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 8))
def test_tails_match_the_sum_over_all_outcomes(chances: list[float], at_least: int) -> None:
    by_hand = sum(
        np.prod([c if hit else 1 - c for c, hit in zip(chances, outcome, strict=True)])
        for outcome in product((False, True), repeat=len(chances))
        if sum(outcome) >= at_least
    )
    tails = compute_tails(np.array([chances]), np.array([at_least]))
    assert tails == pytest.approx([by_hand], abs=1e-12)


def test_tails_far_below_rounding_errors_are_exact() -> None:
    tails = compute_tails(np.full((1, 32), 0.05), np.array([31]))
    assert tails == pytest.approx([binom.sf(30, 32, 0.05)], rel=1e-9)
    assert tails[0] < 1e-35


def test_pairs_that_share_few_texts_are_not_candidates() -> None:
    texts = np.array([[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 5, 6], [-1, -1, -1, 7]])
    assert find_candidates(texts).tolist() == [[0, 1]]


def test_missing_answers_are_not_shared() -> None:
    assert find_candidates(np.full((4, 8), -1)).size == 0


def test_similar_nodes_meet_in_groups_too_large_for_all_pairs() -> None:
    # One text of three on each question gives groups of about 130 nodes; the pair is far apart.
    texts = np.random.default_rng(7).integers(0, 3, size=(400, 32))
    texts[311] = texts[42]
    assert [42, 311] in find_candidates(texts).tolist()


# Six nodes of one model. On the first five questions, the first two give the same text, which no
# other node gives; on two of the five it is text 0. On the last question, three other nodes agree
# with the first one.
SIX = np.array(
    [
        [0, 1, 2, 3, 0, 90],
        [0, 1, 2, 3, 0, 91],
        [10, 11, 12, 13, 14, 90],
        [20, 21, 22, 23, 24, 90],
        [30, 31, 32, 33, 34, 90],
        [40, 41, 42, 43, 44, 92],
    ]
)
ONE_MODEL = np.zeros(6, dtype=np.int64)


def test_a_pairs_results_match_a_calculation_by_hand() -> None:
    compared = compare_pairs(np.array([[0, 1]]), SIX, ONE_MODEL)
    # A matching text is given by 1 of 5 others; where they differ, the popular one by 4 of 5.
    assert compared.matches.tolist() == [4]
    assert compared.both_wrong.tolist() == [5]
    assert compared.expected == pytest.approx([4 * 0.2 + 0.8])
    all_four, three = 0.2**4, 4 * 0.2**3 * 0.8
    assert compared.p_values == pytest.approx([all_four + three * 0.8])


def test_pairs_that_match_no_more_than_expected_are_left_out() -> None:
    compared = compare_pairs(np.array([[0, 1], [0, 2]]), SIX, ONE_MODEL)
    assert compared.pairs.tolist() == [[0, 1]]


def test_many_pairs_are_compared_like_few(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = np.random.default_rng(3).integers(0, 9, size=(30, 24))
    pairs, models = find_candidates(texts), np.arange(30) % 2
    expected = compare_pairs(pairs, texts, models)
    monkeypatch.setattr(matching, "_CHUNK", 7)
    assert len(pairs) > 7
    assert compare_pairs(pairs, texts, models).p_values.tolist() == expected.p_values.tolist()
