"""Judge scores of nodes over rounds, as figures for Plotly; no I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from django.utils.translation import gettext as _

from swarm_record.stats import effective_n, macro_intervals
from swarm_tasks.cells import Cells, add_cells, macro_score
from swarm_web.dashboard.charts.parts import (
    BAND_OPACITY,
    STYLES,
    Figure,
    PooledShare,
    draw_intervals,
    draw_shares,
    isolate,
    layout_shares,
)

# Number of rounds that a point of a line pools, because a single round has few questions.
POOLED_ROUNDS = 5
# Distance between labels at the ends of lines, as a fraction of the highest band.
_LABEL_GAP = 0.055


@dataclass(frozen=True)
class ScorePoint:
    """One node's result in one closed round; `cells` maps each dataset to (correct, n)."""

    node: str
    arm: str
    round: int
    cells: Cells

    @property
    def score(self) -> float:
        """The score of the round: the mean over datasets of correct / n; 0 without questions."""
        return macro_score(self.cells) or 0.0


def pool_rounds(
    points: Sequence[ScorePoint], *, width: int = POOLED_ROUNDS, step: int = 1
) -> list[PooledShare]:
    """Return a node's score at each round, pooled over this and the `width - 1` previous rounds.

    `points` are the rounds of one node, oldest first. Only every `step`-th round gets a score,
    counted back from the last round.
    """
    return _pool(points, range(len(points), 0, -step)[::-1], width=width)


def pool_in(
    points: Sequence[ScorePoint], rounds: Collection[int], *, width: int = POOLED_ROUNDS
) -> list[PooledShare]:
    """Pool as `pool_rounds` does, but return only the points whose round is in `rounds`."""
    ends = [end for end, point in enumerate(points, start=1) if point.round in rounds]
    return _pool(points, ends, width=width)


def _pool(points: Sequence[ScorePoint], ends: Sequence[int], *, width: int) -> list[PooledShare]:
    """Return a score for each index in `ends`, pooled over the `width` points before this index."""
    pooled = [
        reduce(add_cells, (point.cells for point in points[max(0, end - width) : end]))
        for end in ends
    ]
    kept = [points[end - 1] for end in ends]
    scores = [macro_score(cells) or 0.0 for cells in pooled]
    lows, highs = macro_intervals(scores, [effective_n(cells) for cells in pooled])
    return [
        PooledShare(
            point.round,
            point.arm,
            score,
            (float(low), float(high)),
            n=sum(n for __, n in cells.values()),
        )
        for point, score, low, high, cells in zip(kept, scores, lows, highs, pooled, strict=True)
    ]


def draw_leaders(points: Iterable[ScorePoint], *, order: Sequence[str]) -> Figure:
    """Draw a line for each node in `order`, with a band of intervals behind it.

    A line has a point for each round of the node. A point is the node's score over this round and
    the rounds before it, as pooled by `pool_rounds`. `points` are oldest first, with at least one
    for each node in `order`. The band of the first node in `order`, the leader, is the most opaque.
    """
    by_node: defaultdict[str, list[ScorePoint]] = defaultdict(list)
    for point in points:
        by_node[point.node].append(point)
    drawn = {node: pool_rounds(by_node[node]) for node in order}
    # Other bands are fainter: five bands as opaque as the leader's would hide each other.
    bands = [
        draw_intervals(line, opacity=0.07 if place else BAND_OPACITY)
        for place, line in enumerate(drawn.values())
    ]
    lines = [draw_shares(line, name=node) for node, line in drawn.items()]
    pooled = [point for line in drawn.values() for point in line]
    top = max((point.interval[1] for point in pooled), default=1.0)
    ends = {node: line[-1] for node, line in drawn.items()}
    layout = _layout([point.round for point in pooled])
    layout |= {"annotations": _label_ends(ends, top=top), "showlegend": False}
    return {"data": [*bands, *lines], "layout": layout}


def draw_node(
    points: Sequence[ScorePoint], *, base: Sequence[ScorePoint] = (), step: int = 1
) -> Figure:
    """Draw a line of a node's pooled scores with its band, and a line for the untrained model.

    `points` are the node's rounds, and `base` the rounds of a node that runs the same model
    untrained, both oldest first. A line has a point for every `step`-th round, pooled over
    POOLED_ROUNDS rounds, or over `step` rounds if that is more. If `step` is 1, each round of the
    node is also a dot. Without `points` the figure is empty.
    """
    if not points:
        return {"data": [], "layout": _layout([]) | {"showlegend": False}}
    width = max(POOLED_ROUNDS, step)
    line, untrained = (pool_rounds(some, width=width, step=step) for some in (points, base))
    name = _("last %(rounds)s rounds") % {"rounds": width}
    data = [draw_intervals(line)]
    data += [_dots(points)] if step == 1 else []
    data += [draw_shares(line, name=name)]
    data += [draw_shares(untrained, name=_("untrained"))] if untrained else []
    return {"data": data, "layout": _layout([pooled.round for pooled in [*line, *untrained]])}


def _dots(points: Sequence[ScorePoint]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": isolate(_("single round")),
        "x": [point.round for point in points],
        "y": [point.score for point in points],
        "customdata": [_count(point.cells) for point in points],
        "marker": {"color": STYLES[points[-1].arm][0], "size": 6, "opacity": 0.45},
        "hovertemplate": "%{customdata[0]} / %{customdata[1]}",
    }


def _count(cells: Cells) -> list[int]:
    """Return `[solved, all]`: the number of solved questions and the number of all questions."""
    return [sum(correct for correct, __ in cells.values()), sum(n for __, n in cells.values())]


def _label_ends(ends: Mapping[str, PooledShare], *, top: float) -> list[Figure]:
    """Return a label at the end of each line, moved upwards where labels would overlap.

    `ends` maps each node to the last point of its line. `top` is the highest value that the figure
    shows.
    """
    labels: list[Figure] = []
    floor = -1.0
    for name, point in sorted(ends.items(), key=lambda end: end[1].share):
        y = max(point.share, floor)
        floor = y + _LABEL_GAP * top
        labels.append(
            {
                "x": 1.01,
                "xref": "paper",
                "y": y,
                "text": name,
                "xanchor": "left",
                "showarrow": False,
                "name": point.arm,
                "font": {"size": 12},
            }
        )
    return labels


def _layout(rounds: Sequence[int]) -> Figure:
    return layout_shares(rounds, title=_("judge score (macro pass@1)"))
