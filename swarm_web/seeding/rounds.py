"""Seasons and rounds of the demo data, with their questions."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

import msgspec
from django.db.models import Max

from judge.models import Question, Round, Season, Seat
from judge.models.rounds import SECRET_BYTES
from judge.selectors.seasons import task_choices
from swarm_protocol.messages import TaskChoice, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import find_rules
from swarm_tasks.keyspace import Part, keyed_index
from swarm_tasks.quiz import QUIZ_FORMAT_1, QuizRules, commit_quiz, with_answers
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_web.nodes.models import Node
from swarm_web.seeding.nodes import BATCH, DemoClock
from swarm_web.seeding.questions import make_question
from swarm_web.seeding.rows import DemoRound
from swarm_web.seeding.sizes import DemoSize

_NAMES = ("Spring tide", "Midsummer", "Harvest", "First frost", "Long night")
_OPEN = timedelta(seconds=120)
_SCORING = timedelta(seconds=60)
_GRADED_AFTER = timedelta(seconds=4)


def create_season(at: int, size: DemoSize, *, clock: DemoClock) -> Season:
    """Create and return season number `at`, counted from 0. Only the last season is running."""
    last = at == size.seasons - 1
    first = at * size.rounds_per_season
    return Season.objects.create(
        name=_free_name(_NAMES[-size.seasons :][at]),
        state=Season.State.RUNNING if last else Season.State.ENDED,
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        seed=STARTER_SEASON_SEED + at,
        generator=GENERATOR,
        questions_per_round=size.questions,
        assignment=Season.Assignment.COIN if at else Season.Assignment.CHOICE,
        cadence_seconds=int(size.cadence.total_seconds()),
        open_seconds=int(_OPEN.total_seconds()),
        scoring_seconds=int(_SCORING.total_seconds()),
        started_at=_opening_time(first, size, clock=clock),
        ended_at=None if last else _opening_time(first + size.rounds_per_season, size, clock=clock),
    )


def _free_name(name: str) -> str:
    """Return a name for a season: `name`, with a number appended if it is taken."""
    taken = Season.objects.filter(name__startswith=name).count()
    return f"{name} {taken + 1}" if taken else name


def create_rounds(
    season: Season,
    at: int,
    size: DemoSize,
    *,
    tasks: list[TaskChoice],
    clock: DemoClock,
    random: Random,
) -> list[DemoRound]:
    """Create the closed rounds of season number `at`, counted from 0; return them, oldest first.

    `tasks` has a TaskChoice for each question of a round.
    """
    first, number = at * size.rounds_per_season, _next_number()
    rounds = [
        _make_round(
            season, number + i, opens_at=_opening_time(first + i, size, clock=clock), random=random
        )
        for i in range(size.rounds_per_season)
    ]
    stored_rounds = Round.objects.bulk_create(rounds, batch_size=BATCH)
    return [_ask(judge_round, tasks, random=random) for judge_round in stored_rounds]


def open_round(
    season: Season,
    nodes: Sequence[Node],
    *,
    tasks: list[TaskChoice],
    clock: DemoClock,
    random: Random,
) -> None:
    """Create an open round. `nodes` have received its questions and have not answered."""
    judge_round = _make_round(season, _next_number(), opens_at=clock.now, random=random)
    judge_round.phase, judge_round.closed_at = Round.Phase.OPEN, None
    judge_round.inspected_at = None
    judge_round.save()
    _ask(judge_round, tasks, random=random)
    Seat.objects.bulk_create(
        (Seat(round=judge_round, node=node, offered_at=clock.now) for node in nodes),
        batch_size=BATCH,
    )


def _opening_time(at: int, size: DemoSize, *, clock: DemoClock) -> datetime:
    """Return the opening time of round number `at`, counted from 0 over all seasons.

    The rounds are `size.cadence` apart, and the last one opened one cadence before `clock.now`.
    """
    return clock.now - (size.rounds_per_season * size.seasons - at) * size.cadence


def _next_number() -> int:
    return 1 + (Round.objects.aggregate(last=Max("number"))["last"] or 0)


def _make_round(season: Season, number: int, *, opens_at: datetime, random: Random) -> Round:
    """Return a closed round with its rules, secret and commitment; it is not stored yet."""
    rules = QuizRules(
        round=number,
        season=season.name,
        seed=season.seed,
        generator=season.generator,
        tasks=task_choices(season.tasks),
        questions=season.questions_per_round,
        # Demo questions may repeat, so the format must not rule that out.
        format=QUIZ_FORMAT_1,
    )
    rules = with_answers(rules, find_rules(season.answer_rules))
    secret = random.randbytes(SECRET_BYTES)
    closed_at = opens_at + _OPEN + _GRADED_AFTER
    return Round(
        number=number,
        season=season,
        phase=Round.Phase.CLOSED,
        opens_at=opens_at,
        closes_at=opens_at + _OPEN,
        score_by=opens_at + _OPEN + _SCORING,
        closed_at=closed_at,
        inspected_at=closed_at,
        secret=secret,
        rules=msgspec.to_builtins(rules),
        commitment=commit_quiz(rules, secret=secret),
    )


def _ask(judge_round: Round, tasks: list[TaskChoice], *, random: Random) -> DemoRound:
    """Draw a round's questions and completions, and store the questions; return the DemoRound."""
    ids = [uuid.UUID(bytes=random.randbytes(16), version=4) for _ in tasks]
    drawn = [make_question(task.dataset, random=random) for task in tasks]
    questions = Question.objects.bulk_create(
        Question(
            id=question_id,
            round=judge_round,
            position=position,
            dataset=task.dataset,
            spec=msgspec.to_builtins(_make_spec(judge_round, task, counter=position)),
            prompt=question.prompt,
        )
        for position, (question_id, question, task) in enumerate(
            zip(ids, drawn, tasks, strict=True), start=1
        )
    )
    return DemoRound(judge_round, questions, drawn)


def _make_spec(judge_round: Round, task: TaskChoice, *, counter: int) -> TaskSpec:
    """Return the task spec that the round's secret gives for candidate `counter` of the dataset.

    The demo's question is invented, so this spec does not generate it.
    """
    return TaskSpec(
        dataset=task.dataset,
        config=task.config,
        seed=judge_round.season.seed,
        generator=GENERATOR,
        index=keyed_index(
            key=bytes(judge_round.secret),
            part=Part.JUDGE,
            dataset=task.dataset,
            counter=counter,
        ),
    )
