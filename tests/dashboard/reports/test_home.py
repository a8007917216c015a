"""A move is only told where chance hardly makes it."""

from swarm_web.dashboard.reports.home import ScoreChange, find_mover


def test_a_change_within_chance_moves_nobody() -> None:
    assert find_mover([ScoreChange("amber", (8, 16), (11, 16))]) is None


def test_a_fall_is_a_move_too() -> None:
    change = ScoreChange("amber", (16, 16), (1, 16))
    assert find_mover([ScoreChange("bold", (8, 16), (8, 16)), change]) is change


def test_among_many_nodes_a_large_change_is_no_surprise() -> None:
    lucky = ScoreChange("amber", (4, 16), (11, 16))
    assert find_mover([lucky]) is lucky
    others = [ScoreChange(f"n{i}", (8, 16), (8, 16)) for i in range(100)]
    assert find_mover([lucky, *others]) is None


def test_who_solved_all_twice_has_not_moved() -> None:
    assert find_mover([ScoreChange("amber", (16, 16), (16, 16))]) is None


def test_without_nodes_nobody_moves() -> None:
    assert find_mover([]) is None
