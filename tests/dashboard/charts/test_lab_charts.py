"""Test the figures of lab reports."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from swarm_web.dashboard.charts.lab import (
    Style,
    draw_cost,
    draw_curves,
    draw_mechanism,
    draw_onset,
    draw_sketch,
    style_arms,
)
from swarm_web.dashboard.charts.parts import STYLES
from swarm_web.lab.shape import LabArm, LabCurve, PublishedReport
from tests.dashboard.lab_reports import make_arm, make_comparison, make_report

FLAT = LabCurve([1, 2, 3], [1.0, 1.0, 1.0])


def load(**changes: Any) -> PublishedReport:
    return msgspec.convert(make_report(**changes), PublishedReport)


def style(names: Sequence[str]) -> dict[str, Style]:
    return style_arms(msgspec.convert([make_arm(name, 0.1) for name in names], list[LabArm]))


def test_arms_of_the_paper_have_the_styles_of_the_site() -> None:
    styles = style(["2/6", "4/4", "8/0"])
    assert (styles["4/4"].colour, styles["4/4"].rgb, styles["4/4"].dash) == STYLES["swarm"]
    assert (styles["8/0"].colour, styles["8/0"].rgb, styles["8/0"].dash) == STYLES["isolated"]


def test_a_dozen_other_arms_have_distinct_styles() -> None:
    styles = style(["8/0", "4/4", *map(str, range(12))])
    assert len({(style.colour, style.dash) for style in styles.values()}) == 14
    others = list(styles.values())[2:]
    assert not {style.colour for style in others} & {STYLES["swarm"][0], STYLES["isolated"][0]}


def test_band_is_drawn_behind_the_lines() -> None:
    banded = LabCurve([1, 2], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5])
    styles = style(["8/0", "4/4"])
    figure = draw_curves({"8/0": FLAT, "4/4": banded}, styles=styles, title="reward")
    band, alone, mixed = figure["data"]
    assert band["y"] == [1.5, 2.5, 1.5, 0.5]
    assert (alone["name"], mixed["name"]) == ("8/0", "4/4")
    assert mixed["customdata"] == [[0.5, 1.5], [1.5, 2.5]]
    assert "customdata" not in alone


def test_band_of_chance_is_around_zero_and_the_onset_is_marked() -> None:
    report = load()
    onset = report.onsets[0]
    figure = draw_onset(load(), onset)
    chance, line = figure["data"]
    assert (min(chance["y"]), max(chance["y"])) == (-0.02, 0.02)
    assert line["name"] == "4/4 minus 8/0"
    (mark,) = figure["layout"]["shapes"]
    assert mark["x0"] == onset.stays


def test_difference_that_does_not_stay_is_not_marked() -> None:
    onset = msgspec.structs.replace(load().onsets[0], stays=None)
    figure = draw_onset(load(), onset)
    assert "shapes" not in figure["layout"]


def test_gains_are_drawn_over_informative_rollouts_with_intervals() -> None:
    comparison = make_comparison(gain=2.0, gain_low=1.8, gain_high=2.5)
    report = load(own={"8/0": 0.1, "4/4": 0.2}, comparisons=[comparison])
    alone, mixed = draw_mechanism(report)["data"]
    assert (alone["x"], alone["y"]) == ([1.0], [0.0])
    assert (mixed["x"], mixed["y"]) == ([2.0], [1.0])
    assert mixed["error_y"]["array"] == pytest.approx([0.5])
    assert mixed["error_y"]["arrayminus"] == pytest.approx([0.2])
    assert "error_y" not in alone


def test_gain_over_a_zero_baseline_is_not_drawn() -> None:
    report = load(comparisons=[make_comparison(gain=None)], own={"8/0": 0.0, "4/4": 0.2})
    (alone,) = draw_mechanism(report)["data"]
    assert alone["name"] == "8/0"


def test_marker_size_of_an_arm_grows_with_its_reward() -> None:
    report = load(own={"8/0": 0.0, "4/4": 0.1, "2/6": 0.4})
    points = draw_cost(report.arms)["data"]
    assert [point["marker"]["size"] for point in points] == [10.0, 20.0, 30.0]
    assert points[0]["y"] == [0.0]


def test_sketch_stays_inside_its_frame() -> None:
    curves = {"8/0": FLAT, "4/4": LabCurve([1, 2, 3], [0.0, 2.0, 4.0], [0.0] * 3, [0.0, 3.0, 5.0])}
    sketch = draw_sketch(curves, styles=style(list(curves)))
    spots = [
        tuple(map(float, spot.split(",")))
        for line in sketch.lines
        for spot in f"{line.points} {line.band}".split()
    ]
    assert min(y for _, y in spots) == pytest.approx(10)
    assert max(y for _, y in spots) == sketch.floor
    assert max(x for x, _ in spots) == sketch.right


def test_names_in_a_sketch_do_not_overlap() -> None:
    curves = dict.fromkeys(("8/0", "4/4", "2/6"), FLAT)
    sketch = draw_sketch(curves, styles=style(list(curves)))
    heights = sorted(float(line.label_y) for line in sketch.lines)
    assert all(after - before >= 18 for before, after in pairwise(heights))


def test_sketch_of_zero_rewards_is_flat() -> None:
    flat = {"8/0": LabCurve([1, 2], [0.0, 0.0])}
    (line,) = draw_sketch(flat, styles=style(["8/0"])).lines
    assert {spot.split(",")[1] for spot in line.points.split()} == {"156.0"}
