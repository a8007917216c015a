"""What the detections share."""

import numpy as np

from judge.forensics import choose_flagged, write_p


def test_the_smallest_p_value_is_flagged_first_and_the_large_ones_never() -> None:
    assert choose_flagged(np.array([0.0009, 0.5, 0.0001]), 0.001) == [2, 0]


def test_p_values_are_written_with_one_figure() -> None:
    assert write_p(3.4e-12) == "p = 3e-12"
    assert write_p(0.0) == "p < 1e-300"
