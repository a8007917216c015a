"""Checks the published scores of a round against the lines of its results; no I/O.

The Merkle root over these lines is in the chain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose

from node_client.commands.verification.checks import (
    Differences,
    FieldPair,
    RoundCheck,
    conclude,
)
from node_client.commands.verification.records import UPDATE, PublishedRound, decode
from swarm_record.ledgers import MISSED
from swarm_record.merkle import merkle_root
from swarm_record.results import ResultLine, ResultsHead
from swarm_record.stats import effective_n, macro_interval
from swarm_tasks.cells import macro_score

# Scores are sent as decimal text, and intervals are computed by different builds of a library.
SCORE_TOLERANCE, INTERVAL_TOLERANCE = 1e-9, 1e-6

# The fields that a published score and a line have in common.
_FIELDS = ("model", "arm", "status", "reason", "score", "interval", "n", "correct", "cells")


@dataclass(frozen=True)
class RoundResults:
    """A round's results: the head line, a line for each node, and the Merkle root over them all."""

    head: ResultsHead
    lines: list[ResultLine]
    root: str


def read_results(raw: bytes) -> RoundResults:
    """Parse results: a head line, then a line for each node.

    Raises UncheckableError if a line cannot be decoded.
    """
    parts, what = raw.splitlines(), "record of the results"
    head = decode(parts[0] if parts else b"", ResultsHead, what=what, fix=UPDATE)
    lines = [decode(part, ResultLine, what=what, fix=UPDATE) for part in parts[1:]]
    return RoundResults(head, lines, merkle_root(parts))


def check_results(published: PublishedRound, results: RoundResults) -> RoundCheck:
    """Compare the published scores and root with the results, and check each line of the results.

    A line's fields must not contradict its `cells` (`find_mistakes`).
    """
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
        if line is None:
            differences.add(f"result of {score.node}", published="there", ours="none")
            continue
        pairs = [(name, getattr(score, name), getattr(line, name)) for name in _FIELDS]
        differences.add_unequal(pairs, of=score.node)
    for line in results.lines:
        differences.add_unequal(find_mistakes(line), of=line.node)
    return conclude(
        "results",
        compared=f"{len(results.lines):,} scores, intervals and labels with what the chain fixed",
        differences=differences,
    )


def find_mistakes(line: ResultLine) -> Iterator[FieldPair]:
    """Yield each wrong field of a line as (name, line's value, our value).

    `score` and `interval` must follow from `cells`. If the node was scored, `reason` must not be
    one of MISSED. With such a reason, the leaderboard would count the round as missed by the node.
    """
    if line.status == "scored" and line.reason in MISSED:
        yield "reason", line.reason, "none of a node that missed the round"
    score = macro_score(line.cells)
    if not is_close(line.score, score, SCORE_TOLERANCE):
        yield "score", line.score, score
    if score is None:
        return
    ours = macro_interval(score, effective_n(line.cells))
    theirs = line.interval or (None, None)
    if not all(map(is_close, theirs, ours, (INTERVAL_TOLERANCE,) * 2)):
        yield "interval", line.interval, ours


def is_close(one: float | None, other: float | None, tolerance: float) -> bool:
    """Return whether two numbers differ by at most `tolerance`; None equals only None."""
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=0, abs_tol=tolerance)
