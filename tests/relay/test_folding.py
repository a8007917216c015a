"""Folding: changes of many nodes are added to their contributions independently."""

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from judge.models import Season
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution, TrainingPoint
from swarm_web.relay.services.folding import fold_changes
from swarm_web.relay.tally import Change, Part, Point
from tests.factories import make_season
from tests.relay.hubs import NOW, make_report

GONE = 2**40


def part_of(node: Node) -> Contribution:
    return Contribution.objects.get(node=node)


def fold(season: Season, node: Node, **change: Any) -> None:
    fold_changes({(season.pk, node.pk): Change(**change)}, [])


def test_counts_are_summed(season: Season, amber: Node) -> None:
    for _ in range(2):
        fold(season, amber, published=2, rejected=3, delivered=4)
    part = part_of(amber)
    assert (part.published, part.rejected, part.delivered) == (4, 6, 8)


def test_totals_never_decrease(season: Season, amber: Node) -> None:
    fold(season, amber, delivered=9, step=9, local_used=40, external_used=8)
    fold(season, amber, step=2, local_used=3, external_used=1)
    part = part_of(amber)
    assert (part.step, part.local_used, part.external_used) == (9, 40, 8)


def test_used_rollouts_are_limited_to_delivered_ones(season: Season, amber: Node) -> None:
    fold(season, amber, delivered=2, external_used=99)
    assert part_of(amber).external_used == 2


def test_change_without_a_report_keeps_the_last_report(season: Season, amber: Node) -> None:
    change = Change()
    change.note(make_report(step=3, external_dropped={"too_long": 2}))
    fold_changes({(season.pk, amber.pk): change}, [])
    fold(season, amber, published=1)
    part = part_of(amber)
    assert (part.training_reward, part.informative_share) == (0.5, 0.5)
    assert part.external_dropped == {"too_long": 2}


def test_largest_numbers_of_a_report_are_stored(season: Season, amber: Node) -> None:
    most = 2**53
    change = Change(delivered=most)
    report = make_report(
        step=most, local_used=most, external_used=most, external_dropped={"x": most}
    )
    change.note(report)
    fold_changes({(season.pk, amber.pk): change}, [Point((season.pk, amber.pk), NOW, report)])
    part = part_of(amber)
    assert (part.step, part.local_used, part.external_used) == (most, most, most)
    assert part.external_dropped == {"x": most}
    assert TrainingPoint.objects.get().step == most


def test_training_point_is_stored_with_its_time(season: Season, amber: Node) -> None:
    report = make_report(step=4, reflection={"recheck": 0.25})
    fold_changes({}, [Point((season.pk, amber.pk), NOW, report)])
    point = TrainingPoint.objects.get()
    assert (point.node_id, point.step, point.reflection) == (amber.pk, 4, {"recheck": 0.25})
    assert point.at == datetime.fromtimestamp(NOW, UTC)


@pytest.mark.parametrize("gone", ["node", "season"])
def test_changes_of_deleted_rows_are_skipped_and_others_are_stored(
    season: Season, amber: Node, gone: str
) -> None:
    deleted = (season.pk, GONE) if gone == "node" else (GONE, amber.pk)
    existing = (season.pk, amber.pk)
    changes = {deleted: Change(published=5), existing: Change(published=1)}
    fold_changes(changes, [Point(part, NOW, make_report()) for part in (deleted, existing)])
    assert Contribution.objects.get().published == 1
    assert TrainingPoint.objects.get().node_id == amber.pk


@pytest.mark.django_db(transaction=True)
def test_concurrent_folding_of_the_same_new_nodes_does_not_deadlock() -> None:
    season = make_season()
    nodes = Node.objects.bulk_create(
        Node(name=f"n{number}", token_hash=f"{number}") for number in range(4000)
    )
    parts: list[Part] = [(season.pk, node.pk) for node in nodes]
    begin = threading.Barrier(2)
    failures: list[Exception] = []

    def fold_often(order: list[Part]) -> None:
        try:
            for first in range(0, len(order), 1000):
                begin.wait(timeout=30)
                some = sorted(parts[first : first + 1000], reverse=order is not parts)
                fold_changes({part: Change(published=1, delivered=1) for part in some}, [])
        except Exception as problem:  # noqa: BLE001 - asserted in the main thread
            failures.append(problem)
            begin.abort()
        finally:
            connection.close()

    threads = [threading.Thread(target=fold_often, args=(each,)) for each in (parts, parts[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {part.published for part in Contribution.objects.all()} == {2}
