"""One window's leaderboard is drawn up from tallies and the season's record; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swarm_record.ranking import Record, rank_nodes
from swarm_record.stats import effective_n, macro_intervals
from swarm_tasks.marks import Cells, macro_score

BASE_ARM = "base"
# Standing.Remark's values, in the order in which leaderboards list them.
_GROUPS = ("", "too_few", "often_absent", "base", "quarantined")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Entrant:
    """A node with what counts for it in the window.

    It was scored in `rounds` rounds and missed `missed` to which it was invited.
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
    """From what on a node is ranked.

    It needs `questions` that count, and to have been scored in `attendance` percent of the rounds
    that it was invited to.
    """

    questions: int
    attendance: int


@dataclass(frozen=True)
class Line:
    """A node's line: `rank` is (best, worst), or None in windows without ranks.

    It is None too while `remark` says why the node is not ranked.
    """

    entrant: Entrant
    remark: str
    rank: tuple[int, int] | None
    score: float
    interval: tuple[float, float]
    correct: int
    n: int


def draw_up(entrants: Sequence[Entrant], *, record: Record | None, minimum: Minimum) -> list[Line]:
    """Return the lines of a window.

    Row i of the `record` belongs to entrant i; a window without one has no ranks.
    """
    if not entrants:
        return []
    scores = np.array([macro_score(entrant.cells) or 0.0 for entrant in entrants])
    effective = np.array([effective_n(entrant.cells) for entrant in entrants])
    lows, highs = macro_intervals(scores, effective)
    remarks = [_remark(entrant, minimum=minimum) for entrant in entrants]
    ranks = _rank(remarks, record, scores) if record is not None else {}
    return [
        Line(
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


def _rank(remarks: Sequence[str], record: Record, scores: Floats) -> dict[int, tuple[int, int]]:
    """Return the ranks of the entrants without a remark, by their place."""
    ranked = np.flatnonzero([not remark for remark in remarks])
    best, worst = rank_nodes(replace(record, values=record.values[ranked]), scores[ranked])
    return {int(i): (int(b), int(w)) for i, b, w in zip(ranked, best, worst, strict=True)}


def in_order(lines: Sequence[Line]) -> list[Line]:
    """Return the lines as leaderboards list them, best first.

    Ranked nodes come by their best rank, then those with too few questions or too many rounds
    missed, then untrained models, and quarantined nodes last. Those that are otherwise equal are
    in the order of score and key.
    """
    unranked = len(lines) + 1
    return sorted(
        lines,
        key=lambda line: (
            _GROUPS.index(line.remark),
            line.rank[0] if line.rank else unranked,
            -line.score,
            line.entrant.node_id,
        ),
    )


def _remark(entrant: Entrant, *, minimum: Minimum) -> str:
    """Return why a node is not ranked, if so; the values are Standing.Remark's."""
    if entrant.quarantined:
        return "quarantined"
    if entrant.arm == BASE_ARM:
        return "base"
    if sum(n for _, n in entrant.cells.values()) < minimum.questions:
        return "too_few"
    invited = entrant.rounds + entrant.missed
    return "often_absent" if 100 * entrant.rounds < minimum.attendance * invited else ""
