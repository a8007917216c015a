"""A picture of who learned from whom: givers on the left, takers on the right, bands between them.

It is a Sankey diagram of two columns, as numbers that a template writes as SVG. A node that gave
and took is in both columns. The width of a band shows the number of rollouts.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swarm_web.relay.selectors.history import Flow

WIDTH = 900.0
LABEL_WIDTH = 195.0
BAR_WIDTH = 10.0
# Distance between a bar and its name.
LABEL_GAP = 7.0
GAP = 10.0
# The smallest node also needs space for its name.
MIN_BAR_HEIGHT = 16.0
TOP = 8.0
# Height of all bars of a column together, if none is enlarged to MIN_BAR_HEIGHT.
BARS_HEIGHT = 320.0


@dataclass(frozen=True)
class Bar:
    """A node in one column: its name and its rectangle, which is BAR_WIDTH wide.

    `used` is the number of rollouts in its bands. The name is written at `label_x`, outside of the
    columns.
    """

    node: str
    used: int
    x: float
    y: float
    height: float
    label_x: float

    @property
    def middle(self) -> float:
        """The y at which the node's name is written."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Band:
    """The band from one giver to one taker; `path` is its SVG path."""

    link: Flow
    path: str


@dataclass(frozen=True)
class FlowPicture:
    """The whole picture, `width` by `height` units; `bar` is the width of its bars."""

    givers: Sequence[Bar]
    takers: Sequence[Bar]
    bands: Sequence[Band]
    height: float
    width: float = WIDTH
    bar: float = BAR_WIDTH


def draw_flow(links: Sequence[Flow]) -> FlowPicture:
    """Return the picture of who trained on whose rollouts.

    Givers are in the left column, takers in the right one. Each of `links` is a band from its giver
    to its taker. In each column, the node with the most rollouts is on top.
    """
    unit = BARS_HEIGHT / max(1, sum(link.used for link in links))
    givers = _column(
        ((link.giver, link.used) for link in links),
        x=LABEL_WIDTH,
        label_x=LABEL_WIDTH - LABEL_GAP,
        unit=unit,
    )
    right = WIDTH - LABEL_WIDTH
    takers = _column(
        ((link.taker, link.used) for link in links),
        x=right - BAR_WIDTH,
        label_x=right + LABEL_GAP,
        unit=unit,
    )
    height = max((bar.y + bar.height for bar in (*givers, *takers)), default=0.0) + TOP
    return FlowPicture(givers, takers, _bands(links, givers, takers, unit=unit), height)


def _column(
    parts: Iterable[tuple[str, int]], *, x: float, label_x: float, unit: float
) -> list[Bar]:
    totals: Counter[str] = Counter()
    for node, used in parts:
        totals[node] += used
    bars: list[Bar] = []
    y = TOP
    for node, used in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        bars.append(Bar(node, used, x, y, max(MIN_BAR_HEIGHT, used * unit), label_x))
        y += bars[-1].height + GAP
    return bars


def _bands(
    links: Sequence[Flow], givers: Sequence[Bar], takers: Sequence[Bar], *, unit: float
) -> list[Band]:
    """Return a band for each link; `unit` is its thickness per rollout.

    The bands of a bar are in the order of the bars at their other ends, so that few bands cross.
    """
    left, right = ({bar.node: bar for bar in column} for column in (givers, takers))
    # Bands begin in the middle of a bar that is higher than all of them together.
    starts = {name: bar.middle - bar.used * unit / 2 for name, bar in left.items()}
    ends = {name: bar.middle - bar.used * unit / 2 for name, bar in right.items()}
    x0, x1 = LABEL_WIDTH + BAR_WIDTH, WIDTH - LABEL_WIDTH - BAR_WIDTH
    bands = []
    for link in sorted(links, key=lambda each: (left[each.giver].y, right[each.taker].y)):
        thickness = link.used * unit
        y0, y1 = starts[link.giver], ends[link.taker]
        starts[link.giver] += thickness
        ends[link.taker] += thickness
        bands.append(Band(link, _band(x0, y0, x1, y1, thickness=thickness)))
    return bands


def _band(x0: float, y0: float, x1: float, y1: float, *, thickness: float) -> str:
    """Return the SVG path of a band whose upper edge runs from (x0, y0) to (x1, y1)."""
    half = (x0 + x1) / 2
    there = f"M{x0:.1f},{y0:.1f} C{half:.1f},{y0:.1f} {half:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    bottom0, bottom1 = y0 + thickness, y1 + thickness
    below = f"L{x1:.1f},{bottom1:.1f}"
    back = f"C{half:.1f},{bottom1:.1f} {half:.1f},{bottom0:.1f} {x0:.1f},{bottom0:.1f}Z"
    return f"{there} {below} {back}"
