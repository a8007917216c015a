import numpy as np
import pytest

from node_client.lab.onset import find_onset, moving_average
from node_client.lab.statistics import Floats


def noise(pairs: int, rounds: int) -> Floats:
    return np.random.default_rng(1).normal(0, 0.01, size=(pairs, rounds))


def test_moving_average_covers_successive_values() -> None:
    assert moving_average(np.array([1.0, 2.0, 6.0, 4.0]), 3) == pytest.approx([3, 4])


def test_short_curve_is_averaged_completely() -> None:
    assert moving_average(np.array([1.0, 3.0])) == pytest.approx([2])


def test_band_of_six_agreeing_pairs_is_four_sixths_of_their_size() -> None:
    # Of 64 signs 2 give 6/6 and 12 give 4/6; 3 of 64 are below .05.
    found = find_onset(np.full((6, 1), 0.3))
    assert found.band == pytest.approx([0.3 * 4 / 6])
    assert found.stays == 0


def test_onset_is_the_round_from_which_the_arms_differ() -> None:
    differences = noise(8, 40)
    differences[:, 25:] += 0.5
    assert find_onset(differences).stays == 25


def test_temporary_difference_has_a_first_round_but_does_not_stay() -> None:
    differences = noise(8, 40)
    differences[:, 10:20] += 0.5
    found = find_onset(differences)
    assert (found.first, found.stays) == (10, None)


def test_five_pairs_are_never_sufficient() -> None:
    found = find_onset(np.full((5, 30), 1.0))
    assert (found.first, found.stays) == (None, None)


def test_equal_arms_never_differ() -> None:
    assert find_onset(np.zeros((6, 30))).first is None


def test_equal_arms_have_an_onset_in_at_most_five_percent_of_cases() -> None:
    steps = np.random.default_rng(4).normal(size=(600, 6, 60))
    walks = steps.cumsum(axis=-1)  # each round follows from the one before
    found = [find_onset(walk).first is not None for walk in walks]
    assert np.mean(found) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 600)
