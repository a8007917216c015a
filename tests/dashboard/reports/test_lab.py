"""Test the lab's answer, from its summary and reports."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from swarm_web.dashboard.reports.lab import list_arms, read_answer, read_questions, sketch_answer
from swarm_web.dashboard.reports.lab_drawings import (
    chart_cost,
    chart_mechanism,
    draw_report,
    write_bytes,
)
from swarm_web.lab.shape import PublishedReport
from tests.dashboard.lab_reports import (
    ROUNDS,
    make_answer,
    make_curve,
    make_finding,
    make_report,
    publish_sharing,
    write_report,
    write_summary,
)


def load(**changes: Any) -> PublishedReport:
    return msgspec.convert(make_report(**changes), PublishedReport)


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [
        ({}, "helps"),
        ({"holds": False}, "helps"),
        ({"difference": -1.0}, "hurts"),
        ({"p_adjusted": 0.06}, "unclear"),
        ({"phase": "exploratory"}, "explored"),
    ],
)
def test_first_finding_determines_the_verdict(
    lab: Path, finding: dict[str, Any], verdict: str
) -> None:
    write_summary(lab, sparse=make_answer(make_finding(**finding), make_finding(difference=-9.0)))
    assert read_answer().verdict == verdict


def test_verdict_without_a_summary_is_unmeasured(lab: Path) -> None:
    write_report(lab / "sharing")
    answer = read_answer()
    assert (answer.verdict, answer.source, sketch_answer(answer)) == ("unmeasured", None, None)


def test_source_of_an_answer_is_found_by_its_directory(lab: Path) -> None:
    write_report(lab / "sharing")
    write_report(lab / "of-spring")
    write_summary(lab, sparse=make_answer(make_finding(report="of-spring")))
    source = read_answer().source
    assert source is not None
    assert source.name == "of-spring"


def test_answer_without_a_readable_report_has_a_verdict(lab: Path) -> None:
    (write_report(lab / "sharing") / "report.json").write_text("{")
    write_summary(lab, sparse=make_answer(make_finding()))
    answer = read_answer()
    assert (answer.verdict, answer.source, sketch_answer(answer)) == ("helps", None, None)


def test_sketch_shows_the_two_compared_arms(lab: Path) -> None:
    publish_sharing(lab)
    sketch = sketch_answer(read_answer())
    assert sketch is not None
    assert [line.name for line in sketch.lines] == ["8/0", "4/4"]
    assert sketch.rounds == ROUNDS


def test_every_question_is_listed_whether_answered_or_not(lab: Path) -> None:
    write_summary(lab, rival=make_answer(make_finding(), make_finding(holds=False)))
    questions = {each.key: each for each in read_questions()}
    assert len(questions) == 9
    assert (len(questions["rival"].found), questions["rival"].holding) == (2, 1)
    assert questions["map"].found == []


def test_arm_is_compared_with_the_papers_arm_of_the_same_name() -> None:
    alone, mixed, other = list_arms(load())
    assert (alone.is_baseline, alone.found, alone.paper) == (True, None, 1.0)
    assert (mixed.found and mixed.found.gain, mixed.paper) == (2.0, 1.94)
    assert other.paper is None


def test_curves_without_measurements_are_not_drawn() -> None:
    assert [each.key for each in draw_report(load())] == ["cumulative", "own", "held_out", "length"]
    planted = make_report()
    planted["arms"][0]["curves"]["poisoned"] = make_curve([1, 2], [0.0, 0.1])
    assert "poisoned" in [each.key for each in draw_report(load(arms=planted["arms"]))]


def test_table_of_a_curve_ends_with_the_last_round() -> None:
    cumulative = draw_report(load())[0].drawing
    assert cumulative.columns == ["Round", "8/0", "95 %", "4/4", "95 %", "4/4 sender", "95 %"]
    last = cumulative.rows[-1]
    assert last[0] == ROUNDS
    assert last[3] == pytest.approx(0.2 * (ROUNDS + 1) / 2)
    assert len(cumulative.rows) < ROUNDS


def test_arm_without_a_point_in_a_round_has_empty_cells() -> None:
    report = make_report()
    report["arms"][0]["curves"]["held_out"] = make_curve([1, 31], [0.0, 0.1])
    held_out = draw_report(load(arms=report["arms"]))[2].drawing
    (row,) = (row for row in held_out.rows if row[0] == 11)
    assert row[1:3] == [None, None]
    assert row[3] is not None


def test_tables_of_points_describe_each_arm() -> None:
    report = load()
    assert [row[:3] for row in chart_mechanism(report).rows] == [
        ["8/0", "1", "baseline"],
        ["4/4", "2", "+100\u202f%"],
        ["4/4 sender", "3", "+200\u202f%"],
    ]
    assert list(chart_cost(report).rows[1]) == ["4/4", "246\u202f629", "6.13\u202fMB", "4.1"]


@pytest.mark.parametrize(
    ("count", "text"), [(999, "999\u202fB"), (999_499, "999\u202fkB"), (999_500, "1\u202fMB")]
)
def test_size_has_the_largest_unit_that_it_reaches_after_rounding(count: int, text: str) -> None:
    assert write_bytes(count) == text
