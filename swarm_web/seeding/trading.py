"""The traffic of the demo data is written: the archive, the exchanges, the points of training."""

from random import Random

from django.db import connection, models

from judge.models import Season
from judge.selectors.seasons import task_choices
from swarm_web.bulk import copy_rows
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout, Exchange, Learned, TrainingPoint
from swarm_web.seeding.population import Population
from swarm_web.seeding.rows import Cast
from swarm_web.seeding.settling import Clock
from swarm_web.seeding.sizes import Size
from swarm_web.seeding.traffic import (
    EXCHANGE_COLUMNS,
    LEARNED_COLUMNS,
    POINT_COLUMNS,
    ROLLOUT_COLUMNS,
    Row,
    Traffic,
)


def trade(
    season: Season,
    population: Population,
    cast: Cast,
    size: Size,
    *,
    clock: Clock,
    random: Random,
) -> None:
    """Write what a season's nodes gave each other lately, and how their training went."""
    traffic = Traffic(
        season_id=season.pk,
        seed=season.seed,
        tasks=task_choices(season.tasks),
        population=population,
        cast=cast,
        clock=clock,
        sharers=[place for place, arm in enumerate(cast.arms) if arm == Node.Arm.SWARM],
    )
    learned: list[Row] = []
    rollouts: list[Row] = []
    for rollout, learners in traffic.rollouts(_keys(ArchivedRollout, size.archived), random=random):
        rollouts.append(rollout)
        learned += learners
    copy_rows(ArchivedRollout, ROLLOUT_COLUMNS, rollouts)
    copy_rows(Learned, LEARNED_COLUMNS, learned)
    copy_rows(Exchange, EXCHANGE_COLUMNS, traffic.exchanges(size.exchanges, random=random))
    training = (place for place, arm in enumerate(cast.arms) if arm != Node.Arm.BASE)
    copy_rows(
        TrainingPoint,
        POINT_COLUMNS,
        (row for place in training for row in traffic.points(place, size.points, random=random)),
    )


def _keys(model: type[models.Model], count: int) -> list[int]:
    """Reserve so many keys of a table, in order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [model._meta.db_table, count],
        )
        return sorted(key for (key,) in cursor.fetchall())
