"""What all figures use: the arms' colours and dashes, and functions for lines, bands and axes.

Colours and dashes of the arms are the same in every chart and safe for colour-blind readers;
static/js/charts.js adds what depends on the theme (background, text, grid). No I/O.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from django.utils.translation import get_language_bidi, gettext_lazy
from django.utils.translation import gettext as _

Figure = dict[str, Any]
# By arm: the colour for lines, the same colour as red, green and blue for bands, and the dash.
STYLES = {
    "swarm": ("#0072b2", "0,114,178", "solid"),
    "isolated": ("#d55e00", "213,94,0", "dash"),
    "base": ("#7a7f87", "122,127,135", "dot"),
}
ARM_NAMES = {
    "swarm": gettext_lazy("swarm"),
    "isolated": gettext_lazy("isolated"),
    "base": gettext_lazy("untrained"),
}
# The colour (in both forms) of what belongs to no arm, readable on light and dark backgrounds.
NEUTRAL = ("#4a76d6", "74,118,214")
BAND_OPACITY = 0.18
# Unicode's marks around text whose first letter decides its direction.
_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"
# A cell of a chart's table: a float is written as a share, a pair as an interval, None as a dash.
Value = str | int | float | tuple[float, float] | None


def isolate(text: str) -> str:
    """Return text for a figure, between direction marks if the active language is right to left.

    The figure itself runs from left to right in every language.
    """
    return f"{_ISOLATE}{text}{_END_OF_ISOLATE}" if get_language_bidi() else text


def draw_band(
    xs: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    rgb: str,
    opacity: float = BAND_OPACITY,
) -> Figure:
    """Return a Plotly trace that fills the area between lows and highs.

    `rgb` is red, green and blue, such as `0,114,178`.
    """
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*xs, *reversed(xs)],
        "y": [*highs, *reversed(lows)],
        "fill": "toself",
        "fillcolor": f"rgba({rgb},{opacity})",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def draw_line(
    xs: Sequence[float], ys: Sequence[float | None], *, name: str, colour: str, dash: str = "solid"
) -> Figure:
    """Return a Plotly trace: a line, or a dot if there is only one point; a None in ys is a gap."""
    return {
        "type": "scatter",
        "mode": "lines" if len(xs) > 1 else "markers",
        "name": isolate(name),
        "x": list(xs),
        "y": list(ys),
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "size": 7},
    }


def count_axis(values: Sequence[int], *, title: str) -> Figure:
    """Return an axis of whole numbers, such as rounds.

    It has at most eleven ticks, at multiples of 1, 2 or 5 times a power of ten. By default, Plotly
    would also put ticks at halves. Their labels would be rounded, and therefore wrong.
    """
    span = max(values, default=0) - min(values, default=0)
    steps = (leading * 10**power for power in count() for leading in (1, 2, 5))
    return {
        "title": {"text": isolate(title)},
        "dtick": next(step for step in steps if 10 * step >= span),
    }


def share_axis(*, title: str) -> Figure:
    """Return an axis that begins at 0, for fractions of one."""
    return {"title": {"text": isolate(title)}, "rangemode": "tozero", "tickformat": ".2~r"}


def make_layout(*, xaxis: Figure, yaxis: Figure) -> Figure:
    """Return the layout of a figure; charts.js adds what depends on the theme."""
    return {
        "annotations": [],
        "showlegend": True,
        "hovermode": "x unified",
        "xaxis": xaxis,
        "yaxis": yaxis,
    }


def layout_shares(at: Sequence[int], *, title: str, over: str = "") -> Figure:
    """Return the layout of a figure with shares on the y axis and whole numbers on the x axis.

    `at` are the x values, such as rounds. `title` is the title of the y axis, `over` the title of
    the x axis, by default "judge round".
    """
    return make_layout(
        xaxis=count_axis(at, title=over or _("judge round")), yaxis=share_axis(title=title)
    )


# ---- pooled shares


@dataclass(frozen=True)
class PooledShare:
    """A judge score or share of right answers, pooled over several rounds, with its 95 % interval.

    `round` is the last of these rounds, `n` the number of questions or answers in all of them.
    """

    round: int
    arm: str
    share: float
    interval: tuple[float, float]
    n: int


def draw_shares(line: Sequence[PooledShare], *, name: str) -> Figure:
    """Return a Plotly trace: a line through pooled shares, with their intervals as hover labels.

    `line` has at least one share; the arm of its last share decides the style.
    """
    colour, _rgb, dash = STYLES[line[-1].arm]
    rounds, shares = [point.round for point in line], [point.share for point in line]
    return draw_line(rounds, shares, name=name, colour=colour, dash=dash) | {
        "customdata": [[*point.interval, point.n] for point in line],
        "hovertemplate": isolate(
            _(
                "%{y:.3f}, 95 % interval %{customdata[0]:.3f}–%{customdata[1]:.3f}, "
                "n = %{customdata[2]}"
            )
        ),
    }


def draw_intervals(line: Sequence[PooledShare], *, opacity: float = BAND_OPACITY) -> Figure:
    """Return the band of the intervals of pooled shares, in the colour of the last share's arm.

    `line` has at least one share.
    """
    lows, highs = zip(*(point.interval for point in line), strict=True)
    rgb = STYLES[line[-1].arm][1]
    return draw_band([point.round for point in line], lows, highs, rgb=rgb, opacity=opacity)


def thin(count: int, *, about: int) -> Sequence[int]:
    """Return evenly spaced indices of `count` items in ascending order, including the last index.

    If `count` is at most `about`, the result has all indices. Otherwise it has at least `about`
    indices and fewer than twice `about`.
    """
    return range(count - 1, -1, -max(1, count // about))[::-1]


# ---- figures with their tables


@dataclass(frozen=True)
class TabledChart:
    """A figure and a table with the same values; without rows there is nothing to draw.

    `draw` makes the figure. The page that shows the chart contains only the table. The page's
    script requests the figure from a separate URL, and only the view of that URL draws the figure.
    """

    draw: Callable[[], Figure]
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]] = field(default_factory=list)

    @property
    def figure(self) -> Figure:
        """The figure; each access draws it again."""
        return self.draw()
