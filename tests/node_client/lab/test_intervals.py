import numpy as np
import pytest

from node_client.lab.intervals import (
    difference_interval,
    expanded_levels,
    mean_band,
    mean_interval,
    ratio_interval,
)
from node_client.lab.statistics import Floats


def some_values() -> Floats:
    return np.random.default_rng(1).gamma(4, size=(6, 8))


def test_arm_that_earns_twice_as_much_everywhere_gains_exactly_that() -> None:
    values = some_values()
    assert ratio_interval(2 * values, values) == pytest.approx((2, 2))


def test_difference_shared_by_all_pairs_is_certain() -> None:
    values = some_values()
    assert difference_interval(values + 0.5, values) == pytest.approx((0.5, 0.5))


def test_arms_with_different_numbers_of_nodes_are_paired_by_seed() -> None:
    by_seed = np.array([[1.0], [2.0], [3.0], [4.0]])
    interval = ratio_interval(np.repeat(3 * by_seed, 16, axis=1), np.repeat(by_seed, 2, axis=1))
    assert interval == pytest.approx((3, 3))


def test_percentiles_are_widened_according_to_students_t() -> None:
    # Student's t at .025 with 5 degrees of freedom is -2.5706, times sqrt(6 / 5) -2.8159.
    assert expanded_levels(6) == pytest.approx((0.002432, 0.997568), abs=1e-6)


def test_three_seeds_have_no_interval() -> None:
    values = some_values()[:3]
    assert mean_interval(values) is None
    assert ratio_interval(values, values) is None
    assert mean_band(values[..., None]) is None


def test_ratio_to_an_arm_that_may_have_earned_nothing_has_no_interval() -> None:
    others = some_values()
    others[1:] = 0
    assert ratio_interval(some_values(), others) is None
    assert difference_interval(some_values(), others) is not None


def test_differences_between_nodes_widen_the_interval() -> None:
    alike = np.repeat(some_values()[:, :1], 2, axis=1)
    apart = alike + np.array([-1.0, 1.0])
    low, high = mean_interval(alike) or (0, 0)
    lower, higher = mean_interval(apart) or (0, 0)
    assert higher - lower > 1.1 * (high - low)


def test_band_is_the_interval_of_each_round() -> None:
    values = some_values()
    low, high = mean_band(np.stack([values, 10 * values], axis=-1)) or (np.zeros(2),) * 2
    assert 10 * low[0] == pytest.approx(low[1])
    assert (low[0], high[0]) == pytest.approx(mean_interval(values), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [4, 6, 10])
def test_interval_covers_the_true_mean_at_about_its_nominal_rate(seeds: int) -> None:
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(400, seeds, 1)) + rng.normal(0, 0.3, size=(400, seeds, 4))
    found = [mean_interval(sample) or (1, 1) for sample in samples]
    covered = np.mean([low <= 0 <= high for low, high in found])
    assert 0.9 <= covered <= 0.985
