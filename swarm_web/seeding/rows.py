"""Rows of the demo data for Postgres' COPY; no I/O.

Each constant ..._COLUMNS names the values of a row, in order. Scores are computed with the judge's
functions, and cached: many nodes solve the same questions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from random import Random

import msgspec
import numpy as np
import numpy.typing as npt

from judge.models import Question, Round
from swarm_record.stats import effective_n, macro_interval
from swarm_record.stream import pack
from swarm_tasks.cells import summarize_outcomes
from swarm_web.nodes.models import Node
from swarm_web.seeding.population import Population
from swarm_web.seeding.questions import DemoQuestion
from swarm_web.seeding.simulation import RoundOutcome

SEAT_COLUMNS = ("round_id", "node_id", "came_late", "offered_at", "completed_at")
ANSWER_COLUMNS = (
    *("question_id", "node_id", "text", "finish_reason", "received_at", "latency_ms"),
    *("score", "solved", "verdict"),
)
SCORE_COLUMNS = (
    *("round_id", "node_id", "model", "arm", "deviation", "reason", "status", "correct", "n"),
    *("cells", "answered", "solved", "score", "interval_low", "interval_high"),
)
# The columns of SCORE_COLUMNS from `deviation` on, for a node that never asked for the questions.
_ABSENT = (None, "not_offered", "absent", 0, 0, "{}", b"", b"", None, None, None)

Row = tuple[object, ...]


@dataclass(frozen=True)
class DemoRound:
    """A round, its questions, and for each question completions from which answers are drawn."""

    judge_round: Round
    questions: list[Question]
    completions: list[DemoQuestion]


def seat_rows(demo_round: DemoRound, outcome: RoundOutcome, nodes: Sequence[Node]) -> Iterator[Row]:
    """Yield one row of SEAT_COLUMNS for each node of the round."""
    opened_at = demo_round.judge_round.opens_at
    complete = outcome.complete
    for i, index in enumerate(outcome.nodes.tolist()):
        offered_at = opened_at if outcome.offered[i] else None
        completed_at = _later(opened_at, outcome.latency_ms[i, -1]) if complete[i] else None
        yield (demo_round.judge_round.pk, nodes[index].pk, False, offered_at, completed_at)


def answer_rows(
    demo_round: DemoRound, outcome: RoundOutcome, nodes: Sequence[Node], *, random: Random
) -> Iterator[Row]:
    """Yield one row of ANSWER_COLUMNS for each answer of the round."""
    keys = [nodes[index].pk for index in outcome.nodes.tolist()]
    asked = zip(demo_round.questions, demo_round.completions, strict=True)
    for column, (question, completions) in enumerate(asked):
        answered = outcome.answered[:, column].tolist()
        solved = outcome.solved[:, column].tolist()
        latencies = outcome.latency_ms[:, column].tolist()
        for key, is_answered, right, latency in zip(keys, answered, solved, latencies, strict=True):
            if is_answered:
                text = random.choice(completions.right if right else completions.wrong)
                received_at = _later(demo_round.judge_round.opens_at, latency)
                verdict = "right" if right else "wrong"
                result = (float(right), right, verdict)
                yield (question.pk, key, text, "stop", received_at, latency, *result)


def score_rows(
    demo_round: DemoRound, outcome: RoundOutcome, nodes: Sequence[Node], population: Population
) -> Iterator[Row]:
    """Yield one row of SCORE_COLUMNS for each node of the round."""
    datasets = tuple(question.dataset for question in demo_round.questions)
    results = [
        _mark(datasets, row.tobytes()) if offered else None
        for row, offered in zip(outcome.solved, outcome.offered, strict=True)
    ]
    scores = np.array([np.nan if result is None else result.score for result in results])
    deviations = _deviations(scores, population.groups[outcome.nodes])
    complete = outcome.complete
    for i, (index, result) in enumerate(zip(outcome.nodes.tolist(), results, strict=True)):
        node = nodes[index]
        prefix = (demo_round.judge_round.pk, node.pk, node.model, node.arm)
        if result is None:
            yield (*prefix, *_ABSENT)
            continue
        deviation = None if np.isnan(deviations[i]) else float(deviations[i])
        yield (*prefix, deviation, "" if complete[i] else "unanswered", "scored", *result.columns)


@dataclass(frozen=True)
class _Result:
    """A node's score in a round; `columns` has the values for SCORE_COLUMNS from `correct` on."""

    score: float
    columns: Row


@lru_cache(maxsize=100_000)
def _mark(datasets: tuple[str, ...], solved: bytes) -> _Result:
    """Return the result of a node as the judge computes it; unanswered questions count as wrong.

    `datasets` has the dataset of each question, and `solved` a byte for each: 1 if it is solved.
    """
    outcomes = np.frombuffer(solved, dtype=bool)
    summary = summarize_outcomes(zip(datasets, outcomes.tolist(), strict=True))
    assert summary.score is not None, "a round has questions"
    interval = macro_interval(summary.score, effective_n(summary.cells))
    answered, right = pack(np.ones(len(outcomes), dtype=bool)), pack(outcomes)
    cells = msgspec.json.encode(summary.cells).decode()
    columns = (summary.correct, summary.n, cells, answered, right, summary.score, *interval)
    return _Result(summary.score, columns)


def _deviations(
    scores: npt.NDArray[np.float64], groups: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return each node's score minus its model's mean score; nan for untrained and absent nodes.

    `scores` is nan for absent nodes. `groups` has the nodes' values of `Population.groups`.
    """
    counted = ~np.isnan(scores) & (groups >= 0)
    count = np.bincount(groups[counted], minlength=groups.max(initial=0) + 1)
    total = np.bincount(groups[counted], weights=scores[counted], minlength=len(count))
    means = total / np.maximum(1, count)
    return np.where(counted, scores - means[groups], np.nan)


def _later(moment: datetime, milliseconds: float) -> datetime:
    return moment + timedelta(milliseconds=int(milliseconds))
