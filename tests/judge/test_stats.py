"""Intervals and ranks of judge scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from swarm_record.stats import (
    adjust_by_holm,
    effective_n,
    macro_interval,
    macro_intervals,
)


def test_datasets_of_equal_size_count_all_their_questions() -> None:
    assert effective_n({"a": (0, 16), "b": (3, 16), "c": (16, 16)}) == pytest.approx(48)


def test_datasets_of_unequal_size_count_fewer_questions() -> None:
    # Two datasets at w = 1/2: 1 / (1/4 · 1/4 + 1/4 · 1/16) of 4 and 16 questions.
    assert effective_n({"a": (1, 4), "b": (9, 16)}) == pytest.approx(12.8)


def test_datasets_without_questions_are_ignored() -> None:
    assert effective_n({"a": (1, 4), "b": (0, 0)}) == pytest.approx(4)
    assert effective_n({"b": (0, 0)}) == 0
    assert effective_n({}) == 0


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_of_one_dataset_is_clopper_and_pearsons(counts: tuple[int, int]) -> None:
    reference = proportion_confint(*counts, alpha=0.05, method="beta")
    assert macro_interval(counts[0] / counts[1], counts[1]) == pytest.approx(reference, abs=1e-9)


def test_macro_interval_reaches_0_with_none_solved_and_1_with_all() -> None:
    assert macro_interval(0.0, 50)[0] == 0
    assert macro_interval(1.0, 50)[1] == 1
    assert 0 < macro_interval(0.0, 50)[1] < 0.08


@given(st.floats(0, 1), st.floats(0.01, 1e5))
def test_macro_interval_contains_the_score_within_the_unit_range(
    score: float, effective: float
) -> None:
    low, high = macro_interval(score, effective)
    assert 0 <= low <= score <= high <= 1


def test_macro_intervals_of_many_nodes_equal_those_of_each() -> None:
    scores, effective = np.array([0.0, 0.31, 0.9]), np.array([50.0, 12.8, 640.0])
    lows, highs = macro_intervals(scores, effective)
    one_by_one = [macro_interval(*pair) for pair in zip(scores, effective, strict=True)]
    assert list(zip(lows, highs, strict=True)) == one_by_one


# ---- Holm's adjustment


@pytest.mark.parametrize(
    "p_values",
    [
        [0.5],
        [0.04, 0.01, 0.03],
        [0.02, 0.02, 0.02],
        [0.9, 0.01, 0.6, 0.012, 0.0],
        np.random.default_rng(0).uniform(0, 0.2, 20).tolist(),
    ],
)
def test_adjusted_p_values_are_holms(p_values: list[float]) -> None:
    adjusted = adjust_by_holm(p_values, hypotheses=len(p_values))
    assert adjusted == pytest.approx(multipletests(p_values, method="holm")[1])


def test_untested_hypotheses_count() -> None:
    assert adjust_by_holm([0.0001, 0.001], hypotheses=100) == pytest.approx([0.01, 0.099])


def test_no_p_values_give_no_adjusted_ones() -> None:
    assert adjust_by_holm([], hypotheses=10).size == 0
