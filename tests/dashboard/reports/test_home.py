"""Test that only significant changes of a score are reported as a move."""

from swarm_web.dashboard.reports.home import ScoreChange, find_mover


def test_change_within_chance_is_no_move() -> None:
    assert find_mover([ScoreChange("amber", (8, 16), (11, 16))]) is None


def test_significant_decrease_is_a_move() -> None:
    change = ScoreChange("amber", (16, 16), (1, 16))
    assert find_mover([ScoreChange("bold", (8, 16), (8, 16)), change]) is change


def test_threshold_is_higher_with_many_nodes() -> None:
    lucky = ScoreChange("amber", (4, 16), (11, 16))
    assert find_mover([lucky]) is lucky
    others = [ScoreChange(f"n{i}", (8, 16), (8, 16)) for i in range(100)]
    assert find_mover([lucky, *others]) is None


def test_unchanged_perfect_score_is_no_move() -> None:
    assert find_mover([ScoreChange("amber", (16, 16), (16, 16))]) is None


def test_no_nodes_give_no_move() -> None:
    assert find_mover([]) is None
