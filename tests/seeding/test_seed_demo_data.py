"""The demo data: the same for the same seed, true to the judge, and never among real nodes."""

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
from swarm_web.relay.selectors import exchanges_in, recent_rollouts, training_points
from swarm_web.seeding.nodes import DemoClock
from swarm_web.seeding.sizes import SIZES
from swarm_web.seeding.writing import DemoWriter
from tests.factories import make_node

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def plant(*, seed: int = 1) -> None:
    clock = DemoClock(now=NOW, present_until=NOW + timedelta(hours=1))
    DemoWriter(SIZES["small"], seed=seed, clock=clock, report=lambda _: None).write()


def read_story() -> list[Any]:
    scores = Score.objects.order_by("round__number", "node__name")
    return list(scores.values_list("round__number", "node__name", "score", "round__closed_at"))


def test_a_score_is_what_the_judge_makes_of_the_answers() -> None:
    plant()
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


def test_the_standings_have_nothing_left_to_book() -> None:
    plant()
    season = Season.objects.get(state=Season.State.RUNNING)
    assert Standing.objects.filter(season=season, window="season").count() > 10
    assert Comparison.objects.filter(season=season).exists()
    assert not refresh_standings(season, now=NOW)


def test_every_closed_round_has_its_summary() -> None:
    plant()
    closed = Round.objects.filter(phase=Round.Phase.CLOSED)
    assert RoundSummary.objects.count() == closed.count() == 40


def test_the_same_seed_gives_the_same_data() -> None:
    first, again, other = plant_and_forget(3), plant_and_forget(3), plant_and_forget(4)
    assert first == again
    assert first != other


def plant_and_forget(seed: int) -> list[Any]:
    with transaction.atomic():
        plant(seed=seed)
        story = read_story()
        transaction.set_rollback(True)
    return story


def test_indexes_and_constraints_are_back_afterwards() -> None:
    before = describe_tables()
    plant()
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


def test_a_site_with_nodes_is_left_alone() -> None:
    make_node("real")
    with pytest.raises(CommandError, match="1 nodes"):
        call_command("seed_demo_data", verbosity=0)
    assert Node.objects.count() == 1


def test_a_site_with_nodes_is_filled_when_asked_in_clear_words() -> None:
    make_node("real")
    call_command("seed_demo_data", mix_with_what_is_there=True)
    assert Node.objects.connected(now=timezone.now() + timedelta(minutes=30)).count() > 10


def test_rollouts_are_archived_with_those_who_learned_from_them() -> None:
    plant()
    season = Season.objects.get(state=Season.State.RUNNING)
    found = recent_rollouts(season.pk, limit=50)
    assert len(found) == 50
    for rollout in found:
        assert rollout.learned_by == rollout.learned.exclude(node=rollout.author).count()
        assert rollout.solved == sum(c["solved"] for c in rollout.completions)
    assert exchanges_in(season.pk, hour=NOW, limit=10)
    assert training_points(found[0].author, season_id=season.pk)
