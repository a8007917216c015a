"""Rows of the demo data in the text format of Postgres' COPY; pure.

Scores are computed with the judge's functions, once for each pattern of solved questions.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random

import msgspec
import numpy as np
import numpy.typing as npt

from swarm_record.stats import effective_n, macro_interval
from swarm_record.stream import pack
from swarm_tasks.cells import summarize_outcomes
from swarm_web.seeding.questions import DemoQuestion
from swarm_web.seeding.simulation import RoundOutcome

SEAT_COLUMNS = ("round_id", "node_id", "came_late", "offered_at", "completed_at")
ANSWER_COLUMNS = (
    *("question_id", "node_id", "text", "finish_reason", "received_at", "latency_ms"),
    *("score", "solved", "verdict"),
)
SCORE_COLUMNS = (
    *("round_id", "node_id", "model", "arm", "status", "reason", "correct", "n", "cells"),
    *("answered", "solved", "score", "interval_low", "interval_high", "deviation"),
)
_NULL = r"\N"
# The columns of SCORE_COLUMNS from `status` on, for a node that never asked for the questions.
_ABSENT = "\t".join(["absent", "not_offered", "0", "0", "{}", "", "", *[_NULL] * 4])


@dataclass(frozen=True)
class NodeKeys:
    """Primary keys, models and arms of the nodes, by index in the population.

    `groups` is the number of a node's model in KINDS; -1 for untrained nodes.
    """

    keys: list[int]
    models: list[str]
    arms: list[str]
    groups: npt.NDArray[np.int64]


@dataclass(frozen=True)
class DemoRound:
    """A round. `datasets`, `question_ids` and `questions` have one item for each question."""

    round_id: int
    opened_at: datetime
    datasets: tuple[str, ...]
    question_ids: list[uuid.UUID]
    questions: list[DemoQuestion]


def escape(text: str) -> str:
    """Escape a text for COPY."""
    plain = text.replace("\\", "\\\\").replace("\t", "\\t")
    return plain.replace("\n", "\\n").replace("\r", "\\r")


def seat_lines(demo_round: DemoRound, outcome: RoundOutcome, node_keys: NodeKeys) -> Iterator[str]:
    """Yield one row of SEAT_COLUMNS for each node of the round."""
    offered_at = _format_time(demo_round.opened_at)
    complete = outcome.complete
    for i, index in enumerate(outcome.nodes.tolist()):
        offered = offered_at if outcome.offered[i] else _NULL
        last = _later(demo_round.opened_at, outcome.latency_ms[i, -1]) if complete[i] else _NULL
        yield f"{demo_round.round_id}\t{node_keys.keys[index]}\tf\t{offered}\t{last}\n"


def answer_lines(
    demo_round: DemoRound, outcome: RoundOutcome, node_keys: NodeKeys, *, random: Random
) -> Iterator[str]:
    """Yield one row of ANSWER_COLUMNS for each answer of the round."""
    keys = [node_keys.keys[index] for index in outcome.nodes.tolist()]
    graded = zip(demo_round.question_ids, demo_round.questions, strict=True)
    for column, (question_id, question) in enumerate(graded):
        right = [f"{escape(text)}\tstop\t" for text in question.right]
        wrong = [f"{escape(text)}\tstop\t" for text in question.wrong]
        answered = outcome.answered[:, column].tolist()
        solved = outcome.solved[:, column].tolist()
        latencies = outcome.latency_ms[:, column].tolist()
        for key, is_answered, is_solved, latency in zip(
            keys, answered, solved, latencies, strict=True
        ):
            if not is_answered:
                continue
            text = random.choice(right) if is_solved else random.choice(wrong)
            marks = "1\tt\tright" if is_solved else "0\tf\twrong"
            at = _later(demo_round.opened_at, latency)
            yield f"{question_id}\t{key}\t{text}{at}\t{latency}\t{marks}\n"


def score_lines(demo_round: DemoRound, outcome: RoundOutcome, node_keys: NodeKeys) -> Iterator[str]:
    """Yield one row of SCORE_COLUMNS for each node of the round."""
    results = [
        _mark(demo_round.datasets, row.tobytes()) if offered else None
        for row, offered in zip(outcome.solved, outcome.offered, strict=True)
    ]
    scores = np.array([np.nan if result is None else result.score for result in results])
    deviations = _deviations(scores, node_keys.groups[outcome.nodes])
    complete = outcome.complete
    for i, (index, result) in enumerate(zip(outcome.nodes.tolist(), results, strict=True)):
        key, model, arm = node_keys.keys[index], node_keys.models[index], node_keys.arms[index]
        prefix = f"{demo_round.round_id}\t{key}\t{model}\t{arm}"
        if result is None:
            yield f"{prefix}\t{_ABSENT}\n"
            continue
        reason = "" if complete[i] else "unanswered"
        deviation = _NULL if np.isnan(deviations[i]) else repr(float(deviations[i]))
        yield f"{prefix}\tscored\t{reason}\t{result.line}\t{deviation}\n"


@dataclass(frozen=True)
class _Result:
    """The score of a pattern of solved questions, and its columns from `correct` on."""

    score: float
    line: str


@lru_cache(maxsize=100_000)
def _mark(datasets: tuple[str, ...], solved: bytes) -> _Result:
    """Score a pattern as the judge does; unanswered questions count as wrong."""
    outcomes = np.frombuffer(solved, dtype=bool)
    summary = summarize_outcomes(
        zip(datasets, (bool(outcome) for outcome in outcomes), strict=True)
    )
    assert summary.score is not None, "a round has questions"
    low, high = macro_interval(summary.score, effective_n(summary.cells))
    answered, right = pack(np.ones(len(outcomes), dtype=bool)), pack(outcomes)
    cells = msgspec.json.encode(summary.cells).decode()
    columns: Sequence[object] = (
        *(summary.correct, summary.n, cells, rf"\\x{answered.hex()}", rf"\\x{right.hex()}"),
        *(repr(summary.score), repr(low), repr(high)),
    )
    return _Result(summary.score, "\t".join(map(str, columns)))


def _deviations(
    scores: npt.NDArray[np.float64], groups: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return each node's score minus the mean of its model; nan for untrained and absent nodes."""
    counted = ~np.isnan(scores) & (groups >= 0)
    count = np.bincount(groups[counted], minlength=groups.max(initial=0) + 1)
    total = np.bincount(groups[counted], weights=scores[counted], minlength=len(count))
    means = total / np.maximum(1, count)
    return np.where(counted, scores - means[groups], np.nan)


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _later(moment: datetime, milliseconds: float) -> str:
    return _format_time(moment + timedelta(milliseconds=int(milliseconds)))
