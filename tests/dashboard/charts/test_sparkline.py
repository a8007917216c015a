"""Test the sparkline of a node's last rounds."""

from swarm_web.dashboard.charts.scores import draw_sparkline


def test_scale_is_always_from_zero_to_one() -> None:
    line = draw_sparkline([0.0, 1.0])
    assert line is not None
    assert line.points == "2.0,14.0 58.0,2.0"
    assert (line.end_x, line.end_y) == ("58.0", "2.0")


def test_single_round_is_a_dot() -> None:
    line = draw_sparkline([0.5])
    assert line is not None
    assert line.points == "2.0,8.0"


def test_no_round_gives_no_sparkline() -> None:
    assert draw_sparkline([]) is None
