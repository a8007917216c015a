"""The pace of rollouts follows from totals a minute apart."""

from swarm_web.board.pace import Totals, measure_pace, note_totals
from swarm_web.core.store import sync_redis


def test_it_is_told_in_rollouts_a_minute() -> None:
    pace = measure_pace([Totals(0, 100, 40)], Totals(30, 160, 50))
    assert pace is not None
    assert (pace.relayed, pace.used, pace.seconds) == (120, 20, 30)


def test_it_looks_back_a_minute_at_most() -> None:
    noted = [Totals(90, 30, 0), Totals(50, 20, 0), Totals(0, 0, 0)]
    pace = measure_pace(noted, Totals(100, 40, 0))
    assert pace is not None
    assert pace.seconds == 50


def test_it_is_unknown_before_there_is_anything_to_compare_with() -> None:
    assert measure_pace([], Totals(0, 9, 9)) is None
    assert measure_pace([Totals(0, 9, 9)], Totals(2, 9, 9)) is None


def test_a_counter_that_began_anew_is_no_negative_pace() -> None:
    pace = measure_pace([Totals(0, 100, 100)], Totals(30, 0, 0))
    assert pace is not None
    assert (pace.relayed, pace.used) == (0, 0)


def test_totals_are_noted_for_the_next_who_asks() -> None:
    sync_redis().delete("pace:987654321")
    assert note_totals(987654321, Totals(0, 0, 0)) is None
    pace = note_totals(987654321, Totals(60, 6, 3))
    assert pace is not None
    assert (pace.relayed, pace.used) == (6, 3)
