"""Writes demo data, oldest season first; the judge's own code computes the standings."""

from collections import Counter
from collections.abc import Callable
from random import Random

from django.db import connection, models, transaction

from judge.models import Answer, Score, Season, Seat
from judge.selectors.seasons import running_season, task_choices
from judge.services.comparing import compare_season
from judge.services.scores import summarise_season
from judge.services.seasons import end_season
from judge.services.standings import refresh_standings
from swarm_tasks.quiz import share_questions
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.core.bulk import copy_rows
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout, Exchange, Learned, TrainingPoint
from swarm_web.seeding.nodes import DemoClock, create_nodes, enrol_all, write_contributions
from swarm_web.seeding.population import Population, draw_population
from swarm_web.seeding.rounds import create_rounds, create_season, open_round
from swarm_web.seeding.rows import (
    ANSWER_COLUMNS,
    SCORE_COLUMNS,
    SEAT_COLUMNS,
    DemoRound,
    NodeKeys,
    answer_lines,
    score_lines,
    seat_lines,
)
from swarm_web.seeding.simulation import RoundOutcome, Simulation
from swarm_web.seeding.sizes import DemoSize
from swarm_web.seeding.tables import copy_lines, without_constraints
from swarm_web.seeding.traffic import (
    EXCHANGE_COLUMNS,
    LEARNED_COLUMNS,
    POINT_COLUMNS,
    ROLLOUT_COLUMNS,
    Row,
    Traffic,
)

# Number of rounds whose rows are written together, to limit memory.
_ROUND_BATCH = 50

SimulatedRound = tuple[DemoRound, RoundOutcome]


class DemoWriter:
    """Writes one swarm. The same seed gives the same data, relative to the present."""

    def __init__(
        self, size: DemoSize, *, seed: int, clock: DemoClock, report: Callable[[str], None]
    ) -> None:
        self._size, self._seed, self._clock, self._report = size, seed, clock, report
        self._random = Random(seed)
        shares = share_questions(STARTER_TASKS, size.questions)
        columns = [column for column, share in enumerate(shares) for _ in range(share)]
        self._tasks = [STARTER_TASKS[column] for column in columns]
        self._population = draw_population(size.nodes, datasets=len(shares), seed=seed)
        self._simulation = Simulation(self._population, size, datasets=columns, seed=seed + 1)

    def write(self) -> None:
        """Write everything in one transaction, then update Postgres' statistics.

        Ends the running season, because at most one may run.
        """
        with transaction.atomic():
            if (running := running_season()) is not None:
                end_season(running, now=self._clock.now)
            with without_constraints([Seat, Answer, Score]):
                node_keys = create_nodes(self._population, clock=self._clock, seed=self._seed)
                seasons = [self._write_season(at, node_keys) for at in range(self._size.seasons)]
                self._report("creating the indexes")
            self._publish(seasons)
            self._write_present(seasons[-1], node_keys)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def _write_season(self, at: int, node_keys: NodeKeys) -> Season:
        """Write season `at`, counted from 0, with its rounds and participants."""
        season = create_season(at, self._size, clock=self._clock)
        demo_rounds = create_rounds(
            season, at, self._size, tasks=self._tasks, clock=self._clock, random=self._random
        )
        first, took_part = at * len(demo_rounds), Counter[int]()
        for done in range(0, len(demo_rounds), _ROUND_BATCH):
            some = enumerate(demo_rounds[done : done + _ROUND_BATCH], start=first + done)
            simulated = [
                (demo_round, self._simulation.simulate_round(number)) for number, demo_round in some
            ]
            self._write_rounds(simulated, node_keys)
            for _, outcome in simulated:
                took_part.update(outcome.nodes.tolist())
            self._report(f"{season.name}: {done + len(simulated):,} of {len(demo_rounds):,} rounds")
        enrol_all(season, node_keys, took_part)
        write_contributions(season, self._population, node_keys, took_part, random=self._random)
        return season

    def _publish(self, seasons: list[Season]) -> None:
        """Let the judge compute summaries, standings and comparisons."""
        for season in seasons:
            self._report(f"{season.name}: computing the standings")
            summarise_season(season)
            refresh_standings(season, now=self._clock.now)
            compare_season(season, now=self._clock.now)

    def _write_present(self, season: Season, node_keys: NodeKeys) -> None:
        """Write the last season's present: shared rollouts and an open round."""
        self._report(f"{season.name}: writing shared rollouts")
        clock, random = self._clock, self._random
        write_traffic(season, self._population, node_keys, self._size, clock=clock, random=random)
        open_round(season, node_keys.keys, tasks=self._tasks, clock=clock, random=random)

    def _write_rounds(self, simulated: list[SimulatedRound], node_keys: NodeKeys) -> None:
        """Append the seats, answers and scores of these rounds to their tables."""
        copy_lines(
            Seat, SEAT_COLUMNS, (line for s in simulated for line in seat_lines(*s, node_keys))
        )
        copy_lines(
            Answer,
            ANSWER_COLUMNS,
            (line for s in simulated for line in answer_lines(*s, node_keys, random=self._random)),
        )
        copy_lines(
            Score, SCORE_COLUMNS, (line for s in simulated for line in score_lines(*s, node_keys))
        )


def write_traffic(
    season: Season,
    population: Population,
    node_keys: NodeKeys,
    size: DemoSize,
    *,
    clock: DemoClock,
    random: Random,
) -> None:
    """Write a season's recent rollouts and exchanges, and its nodes' training points."""
    traffic = Traffic(
        season_id=season.pk,
        seed=season.seed,
        tasks=task_choices(season.tasks),
        population=population,
        node_keys=node_keys,
        clock=clock,
        sharers=[index for index, arm in enumerate(node_keys.arms) if arm == Node.Arm.SWARM],
    )
    learned: list[Row] = []
    rollouts: list[Row] = []
    for rollout, learners in traffic.rollouts(_keys(ArchivedRollout, size.archived), random=random):
        rollouts.append(rollout)
        learned += learners
    copy_rows(ArchivedRollout, ROLLOUT_COLUMNS, rollouts)
    copy_rows(Learned, LEARNED_COLUMNS, learned)
    copy_rows(Exchange, EXCHANGE_COLUMNS, traffic.exchanges(size.exchanges, random=random))
    training = (index for index, arm in enumerate(node_keys.arms) if arm != Node.Arm.BASE)
    copy_rows(
        TrainingPoint,
        POINT_COLUMNS,
        (row for index in training for row in traffic.points(index, size.points, random=random)),
    )


def _keys(model: type[models.Model], count: int) -> list[int]:
    """Reserve `count` primary keys of a table, and return them in ascending order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [model._meta.db_table, count],
        )
        return sorted(key for (key,) in cursor.fetchall())
