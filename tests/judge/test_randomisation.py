"""Shuffled arms, and p-values that are valid at every look."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from judge.statistics.randomisation import DRAWS, compute_p_values, measure_gaps, shuffle_arms

BLOCKS = {1: (True, False, False, True), 2: (False, True, True, False, True, False)}
PLACES = [(1, 0), (2, 0), (1, 1), (2, 1), (2, 2)]


# ---- arms


def test_the_first_row_has_the_arms_that_the_coin_drew() -> None:
    labels = shuffle_arms(PLACES, BLOCKS, seed=1)
    assert labels.shape == (1 + DRAWS, 5)
    assert labels[0].tolist() == [True, False, False, True, True]


def test_arms_are_shuffled_within_their_blocks() -> None:
    places = [(1, place) for place in range(4)] + [(2, place) for place in range(6)]
    labels = shuffle_arms(places, BLOCKS, seed=1)
    assert set(labels[:, :4].sum(axis=1)) == {2}
    assert set(labels[:, 4:].sum(axis=1)) == {3}
    assert abs(labels.mean(axis=0) - 0.5).max() < 0.04


def test_later_nodes_do_not_change_the_labels_of_earlier_ones() -> None:
    blocks = BLOCKS | {3: (True, False, True, False)}
    more = shuffle_arms([*PLACES, (3, 0), (1, 2)], blocks, seed=1)
    assert (more[:, :5] == shuffle_arms(PLACES, BLOCKS, seed=1)).all()


# ---- statistics


def test_gaps_are_welchs_t_of_the_nodes_that_count() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random((50, 12)) < 0.5
    values = rng.normal(size=(2, 12))
    values[1, :3] = np.nan
    gaps = measure_gaps(labels, values, minimum=2)
    for look in range(2):
        there = ~np.isnan(values[look])
        for label, gap in zip(labels, gaps[look], strict=True):
            arms = values[look, there & label], values[look, there & ~label]
            expected = abs(ttest_ind(*arms, equal_var=False).statistic)
            assert gap == (-1 if min(map(len, arms)) < 2 else pytest.approx(expected, abs=1e-5))


# ---- p-values


def test_the_p_value_of_one_look_is_the_share_of_paths_at_least_as_extreme() -> None:
    gaps = np.array([[7.0, *range(99)]])
    (p,) = compute_p_values(gaps, spent=np.ones(1))
    # 92 of 99 reach further, one ties.
    assert 0.93 <= p <= 0.93 * 1.03
    (best,) = compute_p_values(np.array([[200.0, *range(99)]]), spent=np.ones(1))
    assert 0.01 <= best <= 0.01 * 1.03


def test_paths_that_tie_with_one_beyond_the_quota_do_not_pass() -> None:
    gaps = np.array([[2.0, *[2.0] * 9, *[1.0] * 90]])
    assert compute_p_values(gaps, spent=np.ones(1))[0] >= 0.1


def test_a_look_spends_only_its_part_of_the_budget() -> None:
    gaps = np.array([[200.0, *range(99)], [200.0, *range(99)]])
    early, late = compute_p_values(gaps, spent=np.array([0.25, 1]))
    assert 0.04 <= early <= 0.04 * 1.03
    assert 0.01 <= late <= 0.01 * 1.03


def test_a_rejection_persists_at_later_looks() -> None:
    gaps = np.array([[200.0, *range(99)], [0.0, *range(1, 100)]])
    early, late = compute_p_values(gaps, spent=np.array([0.5, 1]))
    assert early == late <= 0.03


def test_nothing_is_significant_without_a_budget() -> None:
    gaps = np.array([[200.0, *range(99)]])
    assert compute_p_values(gaps, spent=np.zeros(1))[0] == 1


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_the_share_of_rejected_paths_is_at_most_the_level(level: float) -> None:
    """With each path in turn as the observed one, the share of rejections is the true level."""
    rng = np.random.default_rng(1)
    walks = np.abs(rng.normal(size=(6, 200)).cumsum(axis=0)).round(1)
    spent = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 1])
    claims = []
    for path in range(200):
        paths = np.roll(walks, -path, axis=1)
        claims.append(compute_p_values(paths, spent=spent)[-1] <= level)
    assert 0 < sum(claims) <= 200 * level


def test_all_shuffles_of_ten_nodes_are_about_equally_frequent() -> None:
    places = [(0, place) for place in range(10)]
    labels = shuffle_arms(places, {0: [True] * 5 + [False] * 5}, seed=3)
    values = np.array([[9.0, 8, 7, 6, 5, 4, 3, 2, 1, 0]])
    gaps = measure_gaps(labels, values, minimum=5)
    (p,) = compute_p_values(gaps, spent=np.ones(1))
    ways = len(list(combinations(range(10), 5)))
    assert p == pytest.approx(2 / ways, rel=0.35)
