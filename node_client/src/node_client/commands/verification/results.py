"""Checks the lines of a round's results against the published scores; no I/O.

The chain has the Merkle root over these lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose

import msgspec

from node_client.commands.verification.checks import CheckOutcome, Differences, RoundCheck, conclude
from node_client.commands.verification.records import PublishedRound, PublishedScore
from node_client.errors import UncheckableError
from swarm_record.ledgers import MISSED
from swarm_record.merkle import merkle_root
from swarm_record.results import ResultLine, ResultsHead
from swarm_record.stats import effective_n, macro_interval
from swarm_tasks.cells import macro_score

# Scores are sent as decimal text, and intervals are computed by different builds of a library.
SCORE_TOLERANCE, INTERVAL_TOLERANCE = 1e-9, 1e-6

_read_head = msgspec.json.Decoder(ResultsHead).decode
_read_line = msgspec.json.Decoder(ResultLine).decode

# A difference: the field, the published value, ours.
FieldDifference = tuple[str, object, object]


@dataclass(frozen=True)
class RoundResults:
    """A round's results: the head line, a line for each node, and the root over all of them."""

    head: ResultsHead
    lines: list[ResultLine]
    root: str


def read_results(raw: Sequence[bytes]) -> RoundResults:
    """Parse results: a head line, then a line for each node. Raises UncheckableError."""
    try:
        head, lines = _read_head(raw[0] if raw else b""), [_read_line(line) for line in raw[1:]]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UncheckableError(
            f"The site's record of the results cannot be read: {problem}.",
            fix="Install the client that the coordinator's join page names.",
        ) from problem
    return RoundResults(head, lines, merkle_root(raw))


def check_results(published: PublishedRound, results: RoundResults) -> RoundCheck:
    """Compare the published scores and root with the lines, and the lines with their own cells."""
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
        for what, theirs, ours in _compare(score, line) if line else [("result", "there", "none")]:
            differences.add(f"{what} of {score.node}", published=str(theirs), ours=str(ours))
    for line in results.lines:
        for what, theirs, ours in find_mistakes(line):
            differences.add(f"{what} of {line.node}", published=str(theirs), ours=str(ours))
    return conclude(
        "results",
        compared=f"{len(results.lines):,} scores, intervals and labels with what the chain fixed",
        differences=differences,
    )


def without_results() -> RoundCheck:
    """Return the skipped check of a round that is older than the chain and has no such lines."""
    return RoundCheck("results", CheckOutcome.SKIPPED, "the round is older than the chain")


def _compare(score: PublishedScore, line: ResultLine) -> Iterator[FieldDifference]:
    for what in ("model", "arm", "status", "reason", "score", "interval", "n", "correct", "cells"):
        theirs, ours = getattr(score, what), getattr(line, what)
        if theirs != ours:
            yield what, theirs, ours


def find_mistakes(line: ResultLine) -> Iterator[FieldDifference]:
    """Yield the values of a line that contradict its cells: the field, the line's value, ours.

    A scored node with a reason for absence is also one: it would lower the node's attendance.
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
