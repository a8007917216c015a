import numpy as np
import pytest
from scipy.stats import permutation_test

from node_client.lab.statistics import holm, paired_test


def test_three_agreeing_pairs_give_two_of_eight_signs() -> None:
    test = paired_test(np.array([1.0, 2.0, 3.0]))
    assert (test.p, test.p_greater, test.least_p) == (2 / 8, 1 / 8, 2 / 8)


def test_six_agreeing_pairs_give_two_of_sixty_four_signs() -> None:
    assert paired_test(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])).p == 2 / 64


def test_loss_is_as_significant_as_a_gain_but_not_greater() -> None:
    test = paired_test(np.array([-1.0, -2.0, -3.0]))
    assert (test.p, test.p_greater) == (2 / 8, 1.0)


def test_equal_sums_count_as_equal_despite_rounding() -> None:
    # In floating point .1 + .2 - .3 is 5.6e-17, so with other signs the sum is slightly smaller.
    assert paired_test(np.array([0.1, 0.2, -0.3, 0.05])).p == 1.0


def test_p_value_agrees_with_scipy() -> None:
    differences = np.random.default_rng(1).normal(0.4, 1, size=9)
    theirs = permutation_test(
        (differences, np.zeros(9)),
        lambda one, other, axis: np.sum(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert paired_test(differences).p == pytest.approx(theirs.pvalue)


def test_many_pairs_are_tested_by_a_fixed_sample_of_random_signs() -> None:
    differences = np.linspace(-0.2, 1, 20)
    assert 0 < paired_test(differences).p < 0.01
    assert paired_test(differences) == paired_test(differences)


def test_level_is_correct_for_differences_far_from_normal() -> None:
    rng = np.random.default_rng(2)
    found = [paired_test(row).p <= 0.05 for row in rng.laplace(size=(2000, 7)) * rng.gamma(0.5)]
    # The nearest possible level below .05 with seven pairs is 6/128 = .047.
    assert np.mean(found) == pytest.approx(6 / 128, abs=3 * np.sqrt(0.047 / 2000))


def test_holm_multiplies_the_smallest_by_their_number_and_never_decreases() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_holm_is_at_most_one() -> None:
    assert holm([0.6, 0.9]) == [1.0, 1.0]
