"""What the detections share."""

import numpy as np
import pytest

from judge.forensics import adjust_by_holm, choose_flagged, write_p


def test_holms_adjustment_matches_its_definition() -> None:
    # Sorted: .01 * 4, .02 * 3, .03 * 2, .2 * 1; the third may not fall below the second.
    adjusted = adjust_by_holm([0.02, 0.2, 0.01, 0.03], hypotheses=4)
    assert adjusted == pytest.approx([0.06, 0.2, 0.04, 0.06])


def test_hypotheses_that_were_not_looked_at_are_paid_for() -> None:
    assert adjust_by_holm([0.0001, 0.001], hypotheses=100) == pytest.approx([0.01, 0.099])


def test_adjusted_p_values_are_at_most_one() -> None:
    assert adjust_by_holm([0.5, 0.9], hypotheses=10).max() == 1


def test_nothing_is_adjusted_to_nothing() -> None:
    assert adjust_by_holm([], hypotheses=10).size == 0


def test_the_smallest_p_value_is_flagged_first_and_the_large_ones_never() -> None:
    assert choose_flagged(np.array([0.0009, 0.5, 0.0001]), 0.001) == [2, 0]


def test_p_values_are_written_with_one_figure() -> None:
    assert write_p(3.4e-12) == "p = 3e-12"
    assert write_p(0.0) == "p < 1e-300"
