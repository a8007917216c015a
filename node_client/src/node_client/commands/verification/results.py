"""A round's results as lines: what the chain fixed, what is published, what follows; pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose

import msgspec

from node_client.commands.verification.checks import Check, Differences, Outcome, conclude
from node_client.commands.verification.records import PublishedRound, PublishedScore
from node_client.errors import UncheckableError
from swarm_record.ledgers import MISSED
from swarm_record.merkle import merkle_root
from swarm_record.results import ResultLine, ResultsHead
from swarm_record.stats import effective_n, macro_interval
from swarm_tasks.marks import macro_score

# Scores travel as decimal text, and intervals are computed by different builds of one library.
SCORE_TOLERANCE, INTERVAL_TOLERANCE = 1e-9, 1e-6

_read_head = msgspec.json.Decoder(ResultsHead).decode
_read_line = msgspec.json.Decoder(ResultLine).decode

# What a line was expected to say: the name, published, ours.
Found = tuple[str, object, object]


@dataclass(frozen=True)
class Results:
    """A round's results, and the root over the lines that they came as."""

    head: ResultsHead
    lines: list[ResultLine]
    root: str


def read_results(raw: Sequence[bytes]) -> Results:
    """Return the results that lines hold. Raises UncheckableError."""
    try:
        head, lines = _read_head(raw[0] if raw else b""), [_read_line(line) for line in raw[1:]]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UncheckableError(
            f"The site's record of the results cannot be read: {problem}.",
            fix="Install the client that the coordinator's join page names.",
        ) from problem
    return Results(head, lines, merkle_root(raw))


def check_results(published: PublishedRound, results: Results) -> Check:
    """Hold the published scores against the lines that the chain fixed, and against themselves."""
    differences = Differences()
    if results.root != published.results_root:
        differences.add("root of the results", published=published.results_root, ours=results.root)
    fixed = {line.node: line for line in results.lines}
    if len(fixed) != len(published.scores):
        differences.add(
            "nodes with a result", published=str(len(published.scores)), ours=str(len(fixed))
        )
    for score in published.scores:
        line = fixed.get(score.node)
        for what, told, ours in _compare(score, line) if line else [("result", "there", "none")]:
            differences.add(f"{what} of {score.node}", published=str(told), ours=str(ours))
    for line in results.lines:
        for what, told, ours in find_mistakes(line):
            differences.add(f"{what} of {line.node}", published=str(told), ours=str(ours))
    return conclude(
        "results",
        compared=f"{len(results.lines):,} scores, intervals and labels with what the chain fixed",
        differences=differences,
    )


def without_results() -> Check:
    """Return the check of a round from before the chain."""
    return Check("results", Outcome.SKIPPED, "the round is older than the chain")


def _compare(score: PublishedScore, line: ResultLine) -> Iterator[Found]:
    for what in ("model", "arm", "status", "reason", "score", "interval", "n", "correct", "cells"):
        told, ours = getattr(score, what), getattr(line, what)
        if told != ours:
            yield what, told, ours


def find_mistakes(line: ResultLine) -> Iterator[Found]:
    """Yield what does not follow from a line's own cells.

    Nor may a node that was scored be said to have missed the round: that lowers its attendance.
    """
    if line.status == "scored" and line.reason in MISSED:
        yield "reason", line.reason, "none of a node that missed the round"
    score = macro_score(line.cells)
    if not is_close(line.score, score, SCORE_TOLERANCE):
        yield "score", line.score, score
    if score is None:
        return
    ours = macro_interval(score, effective_n(line.cells))
    told = line.interval or (None, None)
    if not all(map(is_close, told, ours, (INTERVAL_TOLERANCE,) * 2)):
        yield "interval", line.interval, ours


def is_close(one: float | None, other: float | None, tolerance: float) -> bool:
    """Tell whether two numbers are equal but for rounding; None is only equal to itself."""
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=0, abs_tol=tolerance)
