"""Builds one window's leaderboard from ledgers and the season's result matrix; pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swarm_record.ledgers import NodeLedger
from swarm_record.ranking import ResultMatrix, rank_nodes
from swarm_record.stats import effective_n, macro_intervals
from swarm_tasks.cells import Cells, macro_score

BASE_ARM = "base"
# The values of a row's `remark`, in the order in which leaderboards list them.
_GROUPS = ("", "too_few", "often_absent", "base", "quarantined")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Entrant:
    """A node with its totals in a window.

    It was scored in `rounds` rounds, and missed `missed` that it was invited to.
    """

    node_id: int
    model: str
    arm: str
    cells: Cells
    rounds: int
    missed: int
    quarantined: bool


@dataclass(frozen=True)
class Minimum:
    """What a node needs to be ranked.

    At least `questions` that count, and a score in `attendance` percent of the rounds that it was
    invited to.
    """

    questions: int
    attendance: int


@dataclass(frozen=True)
class StandingRow:
    """A node's row of the leaderboard; `rank` is (best, worst), and `score` is in [0, 1].

    `rank` is None in windows without ranks, and if `remark` says why the node is not ranked.
    """

    entrant: Entrant
    remark: str
    rank: tuple[int, int] | None
    score: float
    interval: tuple[float, float]
    correct: int
    n: int


def make_entrants(
    nodes: Iterable[NodeLedger], window: str, *, quarantined: Collection[int]
) -> list[Entrant]:
    """Return nodes with their totals in a window; each must have a tally of it.

    `quarantined` are node ids.
    """
    return [
        Entrant(
            node_id=ledger.node_id,
            model=ledger.model,
            arm=ledger.arm,
            cells=ledger.tallies[window].cells,
            rounds=ledger.tallies[window].rounds,
            missed=ledger.tallies[window].missed,
            quarantined=ledger.node_id in quarantined,
        )
        for ledger in nodes
    ]


def build_rows(
    entrants: Sequence[Entrant], *, matrix: ResultMatrix | None, minimum: Minimum
) -> list[StandingRow]:
    """Return the rows of a window, in the order of the entrants.

    Row i of `matrix` belongs to entrant i; without a matrix nobody is ranked.
    """
    if not entrants:
        return []
    scores = np.array([macro_score(entrant.cells) or 0.0 for entrant in entrants])
    effective = np.array([effective_n(entrant.cells) for entrant in entrants])
    lows, highs = macro_intervals(scores, effective)
    remarks = [_remark(entrant, minimum=minimum) for entrant in entrants]
    ranks = _rank(remarks, matrix, scores) if matrix is not None else {}
    return [
        StandingRow(
            entrant=entrant,
            remark=remarks[i],
            rank=ranks.get(i),
            score=float(scores[i]),
            interval=(float(lows[i]), float(highs[i])),
            correct=sum(correct for correct, _ in entrant.cells.values()),
            n=sum(n for _, n in entrant.cells.values()),
        )
        for i, entrant in enumerate(entrants)
    ]


def _rank(
    remarks: Sequence[str], matrix: ResultMatrix, scores: Floats
) -> dict[int, tuple[int, int]]:
    """Return the ranks of the entrants without a remark, by their index."""
    ranked = np.flatnonzero([not remark for remark in remarks])
    best, worst = rank_nodes(replace(matrix, values=matrix.values[ranked]), scores[ranked])
    return {int(i): (int(b), int(w)) for i, b, w in zip(ranked, best, worst, strict=True)}


def sort_rows(rows: Sequence[StandingRow]) -> list[StandingRow]:
    """Return the rows in the order of the leaderboard, best first.

    Ranked nodes come first, by best rank; then nodes with too few questions, nodes that were often
    absent, untrained models, and quarantined nodes. Ties are broken by score, then by node id.
    """
    unranked = len(rows) + 1
    return sorted(
        rows,
        key=lambda row: (
            _GROUPS.index(row.remark),
            row.rank[0] if row.rank else unranked,
            -row.score,
            row.entrant.node_id,
        ),
    )


def _remark(entrant: Entrant, *, minimum: Minimum) -> str:
    """Return why a node is not ranked, as a value of Standing.Remark; empty if it is."""
    if entrant.quarantined:
        return "quarantined"
    if entrant.arm == BASE_ARM:
        return "base"
    if sum(n for _, n in entrant.cells.values()) < minimum.questions:
        return "too_few"
    invited = entrant.rounds + entrant.missed
    return "often_absent" if 100 * entrant.rounds < minimum.attendance * invited else ""
