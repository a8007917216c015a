"""Writes demo data, oldest season first; the judge's own code computes the standings."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from django.db import connection, transaction

from judge.models import Answer, Score, Season, Seat
from judge.selectors.seasons import running_season
from judge.services.comparing import compare_season
from judge.services.scores import summarise_season
from judge.services.seasons import end_season
from judge.services.standings import refresh_standings
from swarm_tasks.quiz import share_questions
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.core.bulk import copy_rows
from swarm_web.nodes.models import Node
from swarm_web.seeding.nodes import DemoClock, create_nodes, enrol_all, write_contributions
from swarm_web.seeding.population import draw_population
from swarm_web.seeding.rounds import create_rounds, create_season, open_round
from swarm_web.seeding.rows import (
    ANSWER_COLUMNS,
    SCORE_COLUMNS,
    SEAT_COLUMNS,
    DemoRound,
    answer_rows,
    score_rows,
    seat_rows,
)
from swarm_web.seeding.simulation import RoundOutcome, Simulation
from swarm_web.seeding.sizes import DemoSize
from swarm_web.seeding.tables import without_constraints
from swarm_web.seeding.traffic import TrafficWriter

# Number of rounds whose rows are written together, to limit memory.
_ROUND_BATCH = 50

SimulatedRound = tuple[DemoRound, RoundOutcome]


class DemoWriter:
    """Writes the demo data of one swarm.

    The same size and seed give the same data, except that all times are relative to the clock.
    """

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
                nodes = create_nodes(self._population, clock=self._clock, seed=self._seed)
                seasons = [self._write_season(at, nodes) for at in range(self._size.seasons)]
                self._report("creating the indexes")
            self._publish(seasons)
            self._write_present(seasons[-1], nodes)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def _write_season(self, at: int, nodes: Sequence[Node]) -> Season:
        """Write season number `at`, counted from 0, with its rounds and participants; return it."""
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
            self._write_rounds(simulated, nodes)
            for _, outcome in simulated:
                took_part.update(outcome.nodes.tolist())
            self._report(f"{season.name}: {done + len(simulated):,} of {len(demo_rounds):,} rounds")
        enrol_all(season, (nodes[index] for index in took_part))
        write_contributions(season, self._population, nodes, took_part, random=self._random)
        return season

    def _publish(self, seasons: list[Season]) -> None:
        """Let the judge compute summaries, standings and comparisons."""
        for season in seasons:
            self._report(f"{season.name}: computing the standings")
            summarise_season(season)
            refresh_standings(season, now=self._clock.now)
            compare_season(season, now=self._clock.now)

    def _write_present(self, season: Season, nodes: Sequence[Node]) -> None:
        """Write what the last season shows now: the traffic of the last hours and an open round."""
        self._report(f"{season.name}: writing shared rollouts")
        clock, random = self._clock, self._random
        TrafficWriter(season, self._population, nodes, clock=clock, random=random).write(self._size)
        open_round(season, nodes, tasks=self._tasks, clock=clock, random=random)

    def _write_rounds(self, simulated: list[SimulatedRound], nodes: Sequence[Node]) -> None:
        """Append the seats, answers and scores of simulated rounds to the database tables."""
        population, random = self._population, self._random
        seats = (row for each in simulated for row in seat_rows(*each, nodes))
        answers = (row for each in simulated for row in answer_rows(*each, nodes, random=random))
        scores = (row for each in simulated for row in score_rows(*each, nodes, population))
        copy_rows(Seat, SEAT_COLUMNS, seats)
        copy_rows(Answer, ANSWER_COLUMNS, answers)
        copy_rows(Score, SCORE_COLUMNS, scores)
