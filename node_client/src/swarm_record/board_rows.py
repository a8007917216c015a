"""Builds one window's leaderboard from ledgers and the season's result matrix; no I/O."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swarm_record.ledgers import NodeLedger, WindowTally
from swarm_record.ranking import ResultMatrix, rank_nodes
from swarm_record.stats import effective_n, macro_intervals
from swarm_tasks.cells import macro_score

BASE_ARM = "base"
# The values of a row's `remark`, in the order in which leaderboards list them.
_GROUPS = ("", "too_few", "often_absent", "base", "quarantined")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Minimum:
    """How much a node must have taken part to be ranked.

    At least `questions` questions must count for the node. Its attendance must be at least
    `attendance` percent. Attendance is the number of rounds in which the node was scored, divided
    by that number plus the number of rounds that it missed.
    """

    questions: int
    attendance: int


@dataclass(frozen=True)
class StandingRow:
    """A node's row of a window's leaderboard; `tally` has its totals in the window.

    `rank` has the best and the worst rank that the node may have. It is None if the window
    has no ranks, or if `remark` has a reason why the node is not ranked. `score` is in [0, 1].
    """

    ledger: NodeLedger
    tally: WindowTally
    remark: str
    rank: tuple[int, int] | None
    score: float
    interval: tuple[float, float]
    correct: int
    n: int


def build_rows(
    nodes: Sequence[NodeLedger],
    window: str,
    *,
    quarantined: Collection[int],
    matrix: ResultMatrix | None,
    minimum: Minimum,
) -> list[StandingRow]:
    """Return the rows of a window, in the order of `nodes`.

    Each node must have a tally of the window. `quarantined` are node ids. Row i of `matrix` has the
    results of `nodes[i]`; without a matrix no node is ranked. `minimum` has the conditions for a
    rank.
    """
    if not nodes:
        return []
    tallies = [ledger.tallies[window] for ledger in nodes]
    scores = np.array([macro_score(tally.cells) or 0.0 for tally in tallies])
    effective = np.array([effective_n(tally.cells) for tally in tallies])
    lows, highs = macro_intervals(scores, effective)
    remarks = [
        "quarantined" if ledger.node_id in quarantined else _remark(ledger.arm, tally, minimum)
        for ledger, tally in zip(nodes, tallies, strict=True)
    ]
    ranks = _rank(remarks, matrix, scores) if matrix is not None else {}
    return [
        StandingRow(
            ledger=ledger,
            tally=tally,
            remark=remarks[i],
            rank=ranks.get(i),
            score=float(scores[i]),
            interval=(float(lows[i]), float(highs[i])),
            correct=sum(correct for correct, _ in tally.cells.values()),
            n=sum(n for _, n in tally.cells.values()),
        )
        for i, (ledger, tally) in enumerate(zip(nodes, tallies, strict=True))
    ]


def _rank(
    remarks: Sequence[str], matrix: ResultMatrix, scores: Floats
) -> dict[int, tuple[int, int]]:
    """Return the (best, worst) ranks of the nodes whose remark is empty, by index in `remarks`."""
    ranked = np.flatnonzero([not remark for remark in remarks])
    best, worst = rank_nodes(replace(matrix, values=matrix.values[ranked]), scores[ranked])
    return {int(i): (int(b), int(w)) for i, b, w in zip(ranked, best, worst, strict=True)}


def sort_rows(rows: Sequence[StandingRow]) -> list[StandingRow]:
    """Return the rows in the order of the leaderboard, best first.

    The rows are grouped by `remark`, in this order: rows without a remark, too few questions, often
    absent, untrained models, quarantined nodes. Within a group, rows are sorted by best rank if
    they have ranks, then by score, then by node id.
    """
    unranked = len(rows) + 1
    return sorted(
        rows,
        key=lambda row: (
            _GROUPS.index(row.remark),
            row.rank[0] if row.rank else unranked,
            -row.score,
            row.ledger.node_id,
        ),
    )


def _remark(arm: str, tally: WindowTally, minimum: Minimum) -> str:
    """Return why a node that is not quarantined is not ranked; empty if it is ranked.

    The reason is a value of Standing.Remark.
    """
    if arm == BASE_ARM:
        return "base"
    if sum(n for _, n in tally.cells.values()) < minimum.questions:
        return "too_few"
    invited = tally.rounds + tally.missed
    return "often_absent" if 100 * tally.rounds < minimum.attendance * invited else ""
