"""Figures for Plotly: plain dicts from score rows; pure.

Colours and dashes of the arms are the same in every chart and safe for colour-blind eyes; what
depends on the theme (paper, ink, grid) is filled in by static/js/charts.js.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from judge.stats import effective_n, macro_intervals
from swarm_tasks.marks import Cells, add_cells, macro_score

Figure = dict[str, Any]

# Single rounds ask few questions, so lines pool the cells of a node's last rounds.
POOLED_ROUNDS = 5
STYLES = {
    "swarm": ("#0072b2", "0,114,178", "solid"),
    "isolated": ("#d55e00", "213,94,0", "dash"),
    "base": ("#7a7f87", "122,127,135", "dot"),
}
# Labels at the ends of lines keep this distance, as a fraction of the highest band.
_LABEL_GAP = 0.055


@dataclass(frozen=True)
class Point:
    """One node's cells in one closed round: dataset -> (correct, n)."""

    node: str
    arm: str
    round: int
    cells: Cells

    @property
    def score(self) -> float:
        """The round's macro score."""
        return macro_score(self.cells) or 0.0


@dataclass(frozen=True)
class Pooled:
    """A macro score over a node's last rounds up to `round`, with its 95 % interval."""

    round: int
    score: float
    low: float
    high: float
    n: int


def pool_rounds(points: Sequence[Point], *, width: int = POOLED_ROUNDS) -> list[Pooled]:
    """Pool each round with the node's `width - 1` rounds before it, as windows do."""
    ends = range(1, len(points) + 1)
    pooled = [
        reduce(add_cells, (point.cells for point in points[max(0, end - width) : end]))
        for end in ends
    ]
    scores = [macro_score(cells) or 0.0 for cells in pooled]
    lows, highs = macro_intervals(scores, [effective_n(cells) for cells in pooled])
    return [
        Pooled(
            round=point.round,
            score=score,
            low=float(low),
            high=float(high),
            n=sum(n for _, n in cells.values()),
        )
        for point, score, low, high, cells in zip(points, scores, lows, highs, pooled, strict=True)
    ]


def draw_leaders(points: Iterable[Point], *, order: Sequence[str]) -> Figure:
    """Draw the pooled score of each node in `order` over rounds, bands behind lines."""
    by_node: defaultdict[str, list[Point]] = defaultdict(list)
    for point in points:
        by_node[point.node].append(point)
    drawn = [(by_node[node][-1].arm, node, pool_rounds(by_node[node])) for node in order]
    # Only the leader's band is strong: five strong ones would hide each other.
    bands = [
        _band(line, arm=arm, opacity=0.07 if place else 0.18)
        for place, (arm, _, line) in enumerate(drawn)
    ]
    lines = [_line(line, name=node, arm=arm) for arm, node, line in drawn]
    ends = [(line[-1], node, arm) for arm, node, line in drawn]
    rounds = [pooled.round for _, _, line in drawn for pooled in line]
    top = max((pooled.high for _, _, line in drawn for pooled in line), default=1.0)
    layout = _layout(rounds, annotations=_label_ends(ends, top=top))
    return {"data": [*bands, *lines], "layout": layout}


def draw_node(points: Sequence[Point]) -> Figure:
    """Draw one node: a dot for each round, a line over the last rounds and its band."""
    if not points:
        return {"data": [], "layout": _layout([])}
    arm = points[-1].arm
    line = pool_rounds(points)
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "single round",
        "x": [point.round for point in points],
        "y": [point.score for point in points],
        "customdata": [_count(point.cells) for point in points],
        "marker": {"color": STYLES[arm][0], "size": 6, "opacity": 0.45},
        "hovertemplate": "round %{x}: %{customdata[0]} of %{customdata[1]}<extra></extra>",
    }
    pooled = _line(line, name=f"last {POOLED_ROUNDS} rounds", arm=arm)
    layout = _layout([pooled.round for pooled in line]) | {"showlegend": True}
    return {"data": [_band(line, arm=arm, opacity=0.18), dots, pooled], "layout": layout}


def _count(cells: Cells) -> list[int]:
    """Return how many questions were solved, and of how many."""
    return [sum(correct for correct, _ in cells.values()), sum(n for _, n in cells.values())]


def _line(line: Sequence[Pooled], *, name: str, arm: str) -> Figure:
    colour, _, dash = STYLES[arm]
    return {
        "type": "scatter",
        "mode": "lines" if len(line) > 1 else "markers",
        "name": name,
        "x": [point.round for point in line],
        "y": [point.score for point in line],
        "customdata": [[point.low, point.high, point.n] for point in line],
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "size": 7},
        "hovertemplate": (
            "%{y:.3f}, 95 % interval %{customdata[0]:.3f}–%{customdata[1]:.3f}, "
            "n = %{customdata[2]}"
        ),
    }


def _band(line: Sequence[Pooled], *, arm: str, opacity: float) -> Figure:
    """Draw the intervals as one closed shape: along the upper ends and back along the lower."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [p.round for p in line] + [p.round for p in reversed(line)],
        "y": [p.high for p in line] + [p.low for p in reversed(line)],
        "fill": "toself",
        "fillcolor": f"rgba({STYLES[arm][1]},{opacity})",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _label_ends(ends: Sequence[tuple[Pooled, str, str]], *, top: float) -> list[Figure]:
    """Name each line at its end, pushed apart upwards where lines end close together.

    `top` is the highest value that the figure shows.
    """
    labels: list[Figure] = []
    floor = -1.0
    for point, name, arm in sorted(ends, key=lambda end: end[0].score):
        y = max(point.score, floor)
        floor = y + _LABEL_GAP * top
        labels.append(
            {
                "x": 1.01,
                "xref": "paper",
                "y": y,
                "text": name,
                "xanchor": "left",
                "showarrow": False,
                "name": arm,
                "font": {"size": 12},
            }
        )
    return labels


def _layout(rounds: Sequence[int], *, annotations: Sequence[Figure] = ()) -> Figure:
    # Whole rounds only, about ten of them: left to itself Plotly names halves and rounds them.
    span = max(rounds, default=0) - min(rounds, default=0)
    return {
        "annotations": list(annotations),
        "showlegend": False,
        "hovermode": "x unified",
        "xaxis": {"title": {"text": "judge round"}, "dtick": max(1, round(span / 10))},
        "yaxis": {
            "title": {"text": "judge score (macro pass@1)"},
            "rangemode": "tozero",
            "tickformat": ".2~f",
        },
    }
