"""The leaderboard's order on pages: untrained models beside the trained ones; pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import hypot
from types import MappingProxyType

from swarm_record.stats import Interval
from swarm_web.leaderboard import Leaderboard, LeaderboardRow

# Ends of the scale on which a page draws its scores; most read as a round number of percent.
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_NOTHING: Mapping[str, Sequence[float]] = MappingProxyType({})


@dataclass(frozen=True)
class Lift:
    """How far a score lies above that of the same model untrained, as fractions of one."""

    difference: float
    interval: Interval
    base: LeaderboardRow


@dataclass(frozen=True)
class BoardLine:
    """A row, its lift where the same model was judged untrained, and the node's recent scores.

    `recent` are fractions of one, a round each, oldest first. `took_part` is the share of the
    window's rounds that the node was scored in; None while the window has no round. Scores are
    drawn on a scale from 0 to `scale_end`, which all lines of a page share.
    """

    row: LeaderboardRow
    lift: Lift | None = None
    recent: Sequence[float] = ()
    took_part: float | None = None
    scale_end: float = 1.0

    @property
    def over_base(self) -> float | None:
        """How far the score lies above that of the same model untrained."""
        return self.lift.difference if self.lift else None

    @property
    def over_base_interval(self) -> Interval | None:
        """The interval of that difference."""
        return self.lift.interval if self.lift else None


def line_up(
    board: Leaderboard, *, recent: Mapping[str, Sequence[float]] = _NOTHING
) -> list[BoardLine]:
    """Return a page's lines, best first, untrained models directly under the best of their kind.

    Untrained models that nobody trained stand at the end. `recent` are scores by node.
    """
    waiting: defaultdict[str, list[LeaderboardRow]] = defaultdict(list)
    for row in board.base:
        waiting[row.model].append(row)
    by_model = {model: tuple(rows) for model, rows in waiting.items()}
    rounds = board.totals.rounds
    end = end_scale((*board.rows, *board.base), recent)

    def describe(row: LeaderboardRow) -> BoardLine:
        lift = None if row.is_base else measure_lift(row, by_model.get(row.model, ()))
        took_part = min(1.0, row.rounds / rounds) if rounds else None
        return BoardLine(row, lift, recent.get(row.node, ()), took_part, end)

    lines: list[BoardLine] = []
    for row in board.rows:
        lines.append(describe(row))
        lines += [describe(base) for base in waiting.pop(row.model, [])]
    return lines + [describe(base) for rows in waiting.values() for base in rows]


def list_trained(board: Leaderboard) -> list[BoardLine]:
    """Return the page's lines without the untrained models that stand beside them."""
    listed = {row.node for row in board.rows}
    return [line for line in line_up(board) if line.row.node in listed]


def end_scale(rows: Sequence[LeaderboardRow], recent: Mapping[str, Sequence[float]]) -> float:
    """Return the least of a few round numbers that no interval and no recent score is above.

    Scores of a young season can all be below .05, where a scale up to 1 would show nothing.
    """
    highest = max(chain((row.interval[1] for row in rows), *recent.values()), default=1.0)
    return next((end for end in _ENDS if end >= highest), 1.0)


def measure_lift(row: LeaderboardRow, bases: Sequence[LeaderboardRow]) -> Lift | None:
    """Compare a row with the same model's untrained row of the most questions, if there is one.

    The interval combines the two rows' own by squares of their lengths (R. G. Newcombe,
    Statistics in Medicine 17, 1998, method 10). It takes them for independent; as both answered
    the same questions where they met, the true one is rather narrower.
    """
    if not bases:
        return None
    base = max(bases, key=lambda candidate: candidate.n)
    difference = row.score - base.score
    (low, high), (base_low, base_high) = row.interval, base.interval
    below = hypot(row.score - low, base_high - base.score)
    above = hypot(high - row.score, base.score - base_low)
    return Lift(difference, (difference - below, difference + above), base)
