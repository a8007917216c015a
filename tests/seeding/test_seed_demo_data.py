"""Test the demo data: reproducible, consistent with the judge, never added to a site with nodes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from judge.models import Comparison, Round, RoundSummary, Score, Season, Standing
from judge.services.scores import score_seats
from judge.services.standings import refresh_standings
from swarm_web.nodes.models import Node
from swarm_web.relay.selectors.archive import recent_rollouts
from swarm_web.relay.selectors.history import exchanges_in, training_points
from swarm_web.seeding.nodes import DemoClock
from swarm_web.seeding.sizes import SIZES
from swarm_web.seeding.writing import DemoWriter
from tests.factories import make_node

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def write_demo_data(*, seed: int = 1) -> None:
    clock = DemoClock(now=NOW, present_until=NOW + timedelta(hours=1))
    DemoWriter(SIZES["small"], seed=seed, clock=clock, report=lambda _: None).write()


def read_scores() -> list[Any]:
    scores = Score.objects.order_by("round__number", "node__name")
    return list(scores.values_list("round__number", "node__name", "score", "round__closed_at"))


def test_seeded_scores_equal_those_that_the_judge_computes() -> None:
    write_demo_data()
    fields = [field.attname for field in Score._meta.concrete_fields if field.name != "id"]
    for judge_round in Round.objects.filter(phase=Round.Phase.CLOSED)[:5]:
        kept = judge_round.scores.order_by("node_id")
        for stored, made in zip(kept, score_seats(judge_round), strict=True):
            for name in fields:
                one, other = getattr(stored, name), getattr(made, name)
                if isinstance(one, float):
                    assert one == pytest.approx(other, abs=1e-12), name
                elif name == "cells":
                    assert one == {dataset: list(cell) for dataset, cell in other.items()}
                else:
                    assert (bytes(one) if isinstance(one, memoryview) else one) == other, name


def test_seeded_standings_are_up_to_date() -> None:
    write_demo_data()
    season = Season.objects.get(state=Season.State.RUNNING)
    assert Standing.objects.filter(season=season, window="season").count() > 10
    assert Comparison.objects.filter(season=season).exists()
    assert not refresh_standings(season, now=NOW)


def test_every_closed_round_has_a_summary() -> None:
    write_demo_data()
    closed = Round.objects.filter(phase=Round.Phase.CLOSED)
    assert RoundSummary.objects.count() == closed.count() == 40


def test_same_seed_gives_the_same_data() -> None:
    first, again, other = write_and_roll_back(3), write_and_roll_back(3), write_and_roll_back(4)
    assert first == again
    assert first != other


def write_and_roll_back(seed: int) -> list[Any]:
    with transaction.atomic():
        write_demo_data(seed=seed)
        story = read_scores()
        transaction.set_rollback(True)
    return story


def test_indexes_and_constraints_are_restored_after_writing() -> None:
    before = describe_tables()
    write_demo_data()
    assert describe_tables() == before


def describe_tables() -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conrelid IN ('judge_seat'::regclass, 'judge_answer'::regclass,"
            " 'judge_score'::regclass) UNION ALL SELECT tablename, indexname, indexdef"
            " FROM pg_indexes WHERE tablename IN ('judge_seat', 'judge_answer', 'judge_score')"
        )
        return sorted(cursor.fetchall())


def test_site_with_nodes_is_not_filled() -> None:
    make_node("real")
    with pytest.raises(CommandError, match="1 nodes"):
        call_command("seed_demo_data", verbosity=0)
    assert Node.objects.count() == 1


def test_site_with_nodes_is_filled_with_the_explicit_option() -> None:
    make_node("real")
    call_command("seed_demo_data", mix_with_what_is_there=True)
    assert Node.objects.connected(now=timezone.now() + timedelta(minutes=30)).count() > 10


def test_archived_rollouts_have_training_records_of_other_nodes() -> None:
    write_demo_data()
    season = Season.objects.get(state=Season.State.RUNNING)
    found = recent_rollouts(season.pk, limit=50)
    assert len(found) == 50
    for rollout in found:
        assert rollout.learned_by == rollout.learned.exclude(node=rollout.author).count()
        assert rollout.solved == sum(c["solved"] for c in rollout.completions)
    assert exchanges_in(season.pk, hour=NOW, limit=10)
    assert training_points(found[0].author, season_id=season.pk, limit=1)
