"""Tally: pending changes are summed, and changes put back are counted once and in order."""

import pytest

from swarm_web.relay.tally import Change, Pair, Point, Tally
from tests.relay.hubs import make_report

PART = (1, 2)


def test_change_keeps_the_largest_totals_and_the_latest_report() -> None:
    change = Change()
    first = make_report(step=9, local_used=40, external_used=7, training_reward=0.25)
    late = make_report(step=8, local_used=30, external_used=6, training_reward=0.75)
    for report in (first, late):
        change.note(report)
    assert (change.step, change.local_used, change.external_used) == (9, 40, 7)
    assert change.report is late


def test_changes_put_back_are_added_to_later_changes() -> None:
    tally = Tally()
    tally.change(PART).published += 2
    tally.change(PART).note(make_report(step=5, external_used=3))
    changes, points = tally.take_changes()
    later = make_report(step=6, external_used=1)
    tally.change(PART).published += 3
    tally.change(PART).delivered += 1
    tally.change(PART).note(later)
    tally.put_back(changes, points)
    [(part, change)] = tally.take_changes()[0].items()
    assert part == PART
    assert (change.published, change.delivered) == (5, 1)
    assert (change.step, change.external_used, change.report) == (6, 3, later)


def test_report_put_back_is_kept_if_there_is_no_later_one() -> None:
    tally, report = Tally(), make_report(step=5)
    tally.change(PART).note(report)
    taken = tally.take_changes()
    tally.change(PART).rejected += 1
    tally.put_back(*taken)
    change = tally.change(PART)
    assert (change.report, change.step, change.rejected) == (report, 5, 1)


def test_latest_points_are_kept_while_they_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("swarm_web.relay.tally.MOST_POINTS", 3)
    tally = Tally()
    for at in range(5):
        tally.points.append(Point(PART, float(at), make_report()))
        tally.put_back(*tally.take_changes())
    assert [point.at for point in tally.points] == [2.0, 3.0, 4.0]


def test_points_put_back_precede_later_ones() -> None:
    tally = Tally()
    first, second = (Point(PART, at, make_report()) for at in (1.0, 2.0))
    tally.points.append(first)
    taken = tally.take_changes()
    tally.points.append(second)
    tally.put_back(*taken)
    assert tally.points == [first, second]


def test_pending_changes_are_taken_once() -> None:
    tally = Tally()
    tally.change(PART).published += 1
    tally.given[PART] += 1
    tally.pairs[Pair(1, 0, 2, 3)] += 1
    assert tally.take_changes()[0]
    assert tally.take_given()
    assert tally.take_credits()[0]
    assert tally.take_changes() == ({}, [])
    assert not tally.take_given()
    assert tally.take_credits() == ({}, [])
