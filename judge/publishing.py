"""One window's leaderboard is drawn up from tallies and answer bits; pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judge.ranking import rank_nodes
from judge.ring import Bits
from judge.stats import effective_n, macro_intervals
from swarm_tasks.marks import Cells, macro_score

BASE_ARM = "base"
# Standing.Remark's values, in the order in which leaderboards list them.
_GROUPS = ("", "too_few", "base", "quarantined")

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Ranker:
    """Ranks nodes, and only once where several windows hold the same answers.

    Comparing all pairs is most of the work of a refresh, and windows often agree: a day of a
    season that began today is the season.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Ints, Ints]] = {}

    def rank(self, solved: Bits, answered: Bits, scores: Floats) -> tuple[Ints, Ints]:
        """Return best and worst ranks, as `rank_nodes` does."""
        seen = hashlib.sha256(scores.tobytes() + solved.tobytes() + answered.tobytes()).digest()
        if seen not in self._known:
            self._known[seen] = rank_nodes(solved, answered, scores)
        return self._known[seen]


@dataclass(frozen=True)
class Entrant:
    """A node with what counts for it in the window."""

    node_id: int
    model: str
    arm: str
    cells: Cells
    rounds: int
    quarantined: bool


@dataclass(frozen=True)
class Line:
    """A node's line: `rank` is (best, worst), or None while `remark` says why there is none."""

    entrant: Entrant
    remark: str
    rank: tuple[int, int] | None
    score: float
    interval: tuple[float, float]
    correct: int
    n: int


def draw_up(
    entrants: Sequence[Entrant], *, answered: Bits, solved: Bits, minimum: int, ranker: Ranker
) -> list[Line]:
    """Return the lines of a window.

    Row i of `answered` and `solved`, (nodes, questions), belongs to entrant i and holds the
    window's questions. Nodes with fewer than `minimum` questions that count are not ranked.
    """
    if not entrants:
        return []
    scores = np.array([macro_score(entrant.cells) or 0.0 for entrant in entrants])
    effective = np.array([effective_n(entrant.cells) for entrant in entrants])
    lows, highs = macro_intervals(scores, effective)
    remarks = [_remark(entrant, minimum=minimum) for entrant in entrants]
    ranked = np.array([i for i, remark in enumerate(remarks) if not remark], dtype=np.int64)
    best, worst = ranker.rank(solved[ranked], answered[ranked], scores[ranked])
    ranks = {int(i): (int(b), int(w)) for i, b, w in zip(ranked, best, worst, strict=True)}
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


def in_order(lines: Sequence[Line]) -> list[Line]:
    """Return the lines as leaderboards list them, best first.

    Ranked nodes come by rank, then those with too few questions, then untrained models, and
    quarantined nodes last. Those that nothing else tells apart stand by score and key.
    """
    unranked = len(lines) + 1
    return sorted(
        lines,
        key=lambda line: (
            _GROUPS.index(line.remark),
            line.rank or (unranked, unranked),
            -line.score,
            line.entrant.node_id,
        ),
    )


def _remark(entrant: Entrant, *, minimum: int) -> str:
    """Return why a node is not ranked, if so; the values are Standing.Remark's."""
    if entrant.quarantined:
        return "quarantined"
    if entrant.arm == BASE_ARM:
        return "base"
    return "too_few" if sum(n for _, n in entrant.cells.values()) < minimum else ""
