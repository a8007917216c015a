"""Demo data is written, oldest season first; the judge's own code draws up the standings."""

from collections import Counter
from collections.abc import Callable
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
from swarm_web.seeding.course import Course, Sitting
from swarm_web.seeding.population import draw_population
from swarm_web.seeding.rounds import begin_season, hold_rounds, open_round
from swarm_web.seeding.rows import (
    ANSWER_COLUMNS,
    SCORE_COLUMNS,
    SEAT_COLUMNS,
    Cast,
    Paper,
    answer_lines,
    score_lines,
    seat_lines,
)
from swarm_web.seeding.settling import Clock, contribute, enrol_all, settle
from swarm_web.seeding.sizes import Size
from swarm_web.seeding.tables import copy_lines, without_constraints
from swarm_web.seeding.trading import trade

# Rounds whose rows are written together: what waits in memory stays small.
_ROUNDS_AT_ONCE = 50

Sat = tuple[Paper, Sitting]


class Planter:
    """Writes one swarm; the same seed gives the same one, shifted to the present."""

    def __init__(self, size: Size, *, seed: int, clock: Clock, tell: Callable[[str], None]) -> None:
        self._size, self._seed, self._clock, self._tell = size, seed, clock, tell
        self._random = Random(seed)
        shares = share_questions(STARTER_TASKS, size.questions)
        columns = [column for column, share in enumerate(shares) for _ in range(share)]
        self._tasks = [STARTER_TASKS[column] for column in columns]
        self._population = draw_population(size.nodes, datasets=len(shares), seed=seed)
        self._course = Course(self._population, size, datasets=columns, seed=seed + 1)

    def plant(self) -> None:
        """Write everything in one transaction: all of it comes, or nothing.

        The season that runs is ended: there is at most one.
        """
        with transaction.atomic():
            if (running := running_season()) is not None:
                end_season(running, now=self._clock.now)
            with without_constraints([Seat, Answer, Score]):
                cast = settle(self._population, clock=self._clock, seed=self._seed)
                seasons = [self._plant_season(at, cast) for at in range(self._size.seasons)]
                self._tell("making the indexes")
            self._publish(seasons)
            self._bring_to_life(seasons[-1], cast)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def _plant_season(self, at: int, cast: Cast) -> Season:
        """Write season `at`, counted from 0, with its rounds and who took part."""
        season = begin_season(at, self._size, clock=self._clock)
        papers = hold_rounds(
            season, at, self._size, tasks=self._tasks, clock=self._clock, random=self._random
        )
        first, took_part = at * len(papers), Counter[int]()
        for done in range(0, len(papers), _ROUNDS_AT_ONCE):
            some = enumerate(papers[done : done + _ROUNDS_AT_ONCE], start=first + done)
            sat = [(paper, self._course.sit(number)) for number, paper in some]
            self._write(sat, cast)
            for _, sitting in sat:
                took_part.update(sitting.nodes.tolist())
            self._tell(f"{season.name}: {done + len(sat):,} of {len(papers):,} rounds")
        enrol_all(season, cast, took_part)
        contribute(season, self._population, cast, took_part, random=self._random)
        return season

    def _publish(self, seasons: list[Season]) -> None:
        """Let the judge draw up summaries, standings and comparisons."""
        for season in seasons:
            self._tell(f"{season.name}: drawing up the standings")
            summarise_season(season)
            refresh_standings(season, now=self._clock.now)
            compare_season(season, now=self._clock.now)

    def _bring_to_life(self, season: Season, cast: Cast) -> None:
        """Write what the last season's nodes do at the moment: they share, and sit a round."""
        self._tell(f"{season.name}: what its nodes gave each other")
        clock, random = self._clock, self._random
        trade(season, self._population, cast, self._size, clock=clock, random=random)
        open_round(season, cast.keys, tasks=self._tasks, clock=clock, random=random)

    def _write(self, sat: list[Sat], cast: Cast) -> None:
        """Append the rows of some rounds to the three long tables."""
        copy_lines(Seat, SEAT_COLUMNS, (line for s in sat for line in seat_lines(*s, cast)))
        copy_lines(
            Answer,
            ANSWER_COLUMNS,
            (line for s in sat for line in answer_lines(*s, cast, random=self._random)),
        )
        copy_lines(Score, SCORE_COLUMNS, (line for s in sat for line in score_lines(*s, cast)))
