"""Which findings are flagged, and how p-values are printed."""

import numpy as np

from judge.statistics.flagging import choose_flagged, format_p_value


def test_small_p_values_are_flagged_in_order_and_large_ones_are_not() -> None:
    assert choose_flagged(np.array([0.0009, 0.5, 0.0001]), 0.001) == [2, 0]


def test_p_values_are_printed_with_one_digit() -> None:
    assert format_p_value(3.4e-12) == "p = 3e-12"
    assert format_p_value(0.0) == "p < 1e-300"
