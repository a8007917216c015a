"""Measure the leaderboard's refresh after one more round of a season with a long history.

The season's seats and answers are written with PostgreSQL's COPY.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import msgspec
import numpy as np
import psycopg
from django.db import connection
from django.db.models import Max
from django.utils import timezone

from judge.models import Answer, Question, Round, Score, Season, Seat
from judge.services.scores import write_scores
from judge.services.standings import refresh_standings
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.core.bulk import copy_rows
from swarm_web.nodes.models import Node

_names = count(1)
_DATASETS = [task.dataset for task in STARTER_TASKS]


_ANSWER_COLUMNS = [
    *("question_id", "node_id", "text", "finish_reason"),
    *("received_at", "score", "solved", "verdict"),
]


@dataclass(frozen=True)
class Refresh:
    """A leaderboard refresh: answers in the season, seconds in the database, and total seconds."""

    answers: int
    database_s: float
    total_s: float


class Stopwatch:
    """A wrapper for `connection.execute_wrapper` that adds up the seconds of database calls.

    A COPY does not pass the wrapper; `_timed_copies` adds its time, which includes the formatting
    of its rows.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        with self.running():
            return execute(sql, params, many, context)

    @contextmanager
    def running(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


def measure_refresh(*, nodes: int, rounds: int, questions: int) -> Refresh:
    """Fill a season with `rounds` rounds, and time the refresh that adds the last one.

    When the refresh starts, the standings contain all earlier rounds.
    """
    season = Season.objects.create(
        name=f"history {next(_names)}",
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        state=Season.State.DRAFT,  # which the site's own worker leaves alone
        questions_per_round=questions,
    )
    ids = _make_nodes(nodes)
    now = timezone.now()
    random = np.random.default_rng(nodes + rounds)
    ability = random.beta(2, 4, size=nodes)
    for number in range(rounds):
        if number == rounds - 1:
            refresh_standings(season, now=now)
        closed_at = now - timedelta(minutes=rounds - number)
        _add_round(season, ids, ability, closed_at=closed_at, questions=questions, random=random)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    answers = Answer.objects.filter(question__round__season=season).count()
    stopwatch, start = Stopwatch(), time.perf_counter()
    with connection.execute_wrapper(stopwatch), _timed_copies(stopwatch):
        refresh_standings(season, now=now)
    return Refresh(answers, stopwatch.seconds, time.perf_counter() - start)


@contextmanager
def _timed_copies(stopwatch: Stopwatch) -> Iterator[None]:
    copy = psycopg.Cursor.copy

    @contextmanager
    def timed(self: Any, statement: Any) -> Iterator[Any]:
        with stopwatch.running(), copy(self, statement) as running:
            yield running

    with patch.object(psycopg.Cursor, "copy", timed):
        yield


def _make_nodes(number: int) -> list[int]:
    made = Node.objects.bulk_create(
        Node(name=f"history-{next(_names)}", token_hash=uuid4().hex, model="bench")
        for _ in range(number)
    )
    return [node.pk for node in made]


def _add_round(
    season: Season,
    nodes: list[int],
    ability: Any,
    *,
    closed_at: datetime,
    questions: int,
    random: np.random.Generator,
) -> None:
    """Write a closed round with its questions, seats, answers and scores.

    `ability` (nodes,) is each node's probability of solving a question.
    """
    judge_round = _make_round(season, closed_at=closed_at)
    asked = _ask(judge_round, questions)
    copy_rows(
        Seat,
        ["round_id", "node_id", "came_late", "offered_at", "completed_at"],
        ((judge_round.pk, node, False, closed_at, closed_at) for node in nodes),
    )
    solved = random.random((len(nodes), questions)) < ability[:, None]
    copy_rows(Answer, _ANSWER_COLUMNS, _answers(asked, nodes, solved, at=closed_at))
    write_scores(judge_round)
    assert Score.objects.filter(round=judge_round).count() == len(nodes)


def _make_round(season: Season, *, closed_at: datetime) -> Round:
    return Round.objects.create(
        number=1 + (Round.objects.aggregate(last=Max("number"))["last"] or 0),
        season=season,
        phase=Round.Phase.CLOSED,
        opens_at=closed_at - timedelta(seconds=60),
        closes_at=closed_at - timedelta(seconds=1),
        score_by=closed_at,
        closed_at=closed_at,
        inspected_at=closed_at,
    )


def _ask(judge_round: Round, questions: int) -> list[Question]:
    return Question.objects.bulk_create(
        Question(
            round=judge_round,
            position=i + 1,
            dataset=_DATASETS[i % len(_DATASETS)],
            spec={},
            prompt="?",
        )
        for i in range(questions)
    )


def _answers(
    asked: list[Question], nodes: list[int], solved: Any, *, at: datetime
) -> Iterator[tuple[object, ...]]:
    """Yield a row of _ANSWER_COLUMNS for each node and question.

    `solved` (nodes, questions) is true where the node solved the question.
    """
    for node, row in zip(nodes, solved, strict=True):
        for question, right in zip(asked, row, strict=True):
            verdict = "right" if right else "wrong"
            text, score = "<answer>1</answer>", float(right)
            yield (question.pk, node, text, "stop", at, score, bool(right), verdict)
