"""Test the placement of base models on the leaderboard, and the lift of nodes over them."""

import pytest
from django.utils import timezone

from swarm_web.board.leaderboard import Leaderboard, LeaderboardRow
from swarm_web.dashboard.reports.board import choose_scale_end, make_lines, measure_lift
from tests.dashboard.board_rows import make_row


def make_board(*rows: LeaderboardRow) -> Leaderboard:
    return Leaderboard(
        season="Autumn",
        window="season",
        as_of=timezone.now(),
        recent_rounds=20,
        minimum_questions=16,
        minimum_attendance=90,
        rows=[row for row in rows if not row.is_base],
        base=[row for row in rows if row.is_base],
        waiting=[],
    )


def test_base_follows_the_best_node_of_its_model() -> None:
    board = make_board(
        make_row("a", model="large"),
        make_row("b"),
        make_row("c"),
        make_row("base-tiny", base=True),
        make_row("base-large", model="large", base=True),
    )
    assert [line.row.node for line in make_lines(board)] == [
        "a",
        "base-large",
        "b",
        "base-tiny",
        "c",
    ]


def test_base_without_nodes_of_its_model_is_last() -> None:
    board = make_board(make_row("base-odd", model="odd", base=True), make_row("a"))
    assert [line.row.node for line in make_lines(board)] == ["a", "base-odd"]


def test_every_node_of_the_model_has_a_lift() -> None:
    board = make_board(
        make_row("a", score=0.75), make_row("b", score=0.25), make_row("base-tiny", base=True)
    )
    lifts = {line.row.node: line.lift.difference for line in make_lines(board) if line.lift}
    assert lifts == {"a": 0.25, "b": -0.25}


def test_lift_is_measured_over_the_base_with_the_most_questions() -> None:
    few, many = make_row("few", n=16, base=True), make_row("many", n=32, base=True)
    lift = measure_lift(make_row("a"), [few, many, few])
    assert lift is not None
    assert lift.base is many


def test_interval_of_a_lift_combines_both_intervals() -> None:
    lift = measure_lift(make_row("a", score=0.75), [make_row("base", base=True)])
    assert lift is not None
    assert lift.interval == pytest.approx((0.25 - 0.05, 0.25 + 0.05))


def test_lines_share_the_scale_of_the_highest_interval() -> None:
    board = make_board(make_row("a", score=0.12), make_row("b", score=0.04))
    assert [line.scale_end for line in make_lines(board)] == [0.2, 0.2]


def test_recent_score_above_all_intervals_extends_the_scale() -> None:
    rows = [make_row("a", score=0.01)]
    assert choose_scale_end(rows, {}) == 0.05
    assert choose_scale_end(rows, {"a": [0.0, 0.3]}) == 0.5


def test_scale_without_lines_ends_at_one() -> None:
    assert choose_scale_end([], {}) == 1.0
