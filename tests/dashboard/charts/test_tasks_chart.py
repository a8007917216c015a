"""Test the chart of a dataset's pass rates: pooled rounds, and a line style per arm."""

from swarm_web.dashboard.charts.tasks import RoundTally, draw_pass_rates, pool_tallies


def test_point_pools_its_round_and_nine_before() -> None:
    tallies = [RoundTally(1, 0, 4), *(RoundTally(number, 4, 4) for number in range(2, 12))]
    *_earlier, before, last = pool_tallies(tallies, arm="base")
    assert [(point.share, point.n) for point in (before, last)] == [(0.9, 40), (1.0, 40)]


def test_first_points_pool_the_rounds_so_far() -> None:
    tallies = [RoundTally(1, 0, 4), RoundTally(2, 4, 4)]
    points = pool_tallies(tallies, arm="base")
    assert [(point.share, point.n) for point in points] == [(0.0, 4), (0.5, 8)]


def test_point_is_inside_its_interval() -> None:
    (point,) = pool_tallies([RoundTally(7, 3, 10)], arm="base")
    assert point.share == 0.3
    assert point.interval[0] < point.share < point.interval[1]


def test_rounds_without_an_answer_have_no_point() -> None:
    assert pool_tallies([RoundTally(1, 0, 0)], arm="base") == []


def test_each_arm_has_a_line_in_its_style_and_a_band_behind_the_lines() -> None:
    tallies = [RoundTally(1, 1, 4), RoundTally(2, 2, 4)]
    arms = [pool_tallies(tallies, arm=arm) for arm in ("swarm", "isolated")]
    figure = draw_pass_rates([*arms, []])
    bands, lines = figure["data"][:2], figure["data"][2:]
    assert [drawn["line"]["dash"] for drawn in lines] == ["solid", "dash"]
    assert all(band["fill"] == "toself" for band in bands)
