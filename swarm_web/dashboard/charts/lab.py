"""The figures of a lab report, with arms as curves or as points, and a small SVG sketch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from django.utils.translation import gettext as _

from swarm_web.dashboard.charts.parts import (
    STYLES,
    Figure,
    count_axis,
    draw_band,
    draw_line,
    isolate,
    layout_shares,
    make_layout,
    share_axis,
    thin,
)
from swarm_web.lab.shape import LabArm, LabComparison, LabCurve, LabOnset, PublishedReport

# The paper's arms that are drawn like the site's arms.
_FIXED_STYLES = {"4/4": ("swarm", "circle"), "8/0": ("isolated", "square")}
# Colours that no arm of the site has, readable on light and dark paper. Their number and the number
# of dashes share no factor, so the first twelve arms differ in colour or dash.
_COLOURS = (
    ("#009e73", "0,158,115"),
    ("#cc79a7", "204,121,167"),
    ("#b38600", "179,134,0"),
    ("#8a6fd0", "138,111,208"),
)
_DASHES = ("dot", "dashdot", "longdash")
_SYMBOLS = ("diamond", "triangle-up", "cross", "star", "hexagon")
_CHANCE = "122,127,135"
# Diameters of marks, in pixels.
_MARK = 12
_MIN_DIAMETER, _MAX_DIAMETER = 10, 30
WIDTH, HEIGHT = 380, 190
# Where lines begin and end; names are at the right, the number of rounds below.
_LEFT, _RIGHT, _TOP, _FLOOR = 4, 264, 10, 156
# Minimum distance between the names of two lines.
_ROW = 18.0
# Enough points for smooth lines at this size.
_POINTS = 60
# Plotly's names of dashes, with their values in SVG.
DASHES = {"solid": "", "dash": "6 3", "dot": "1.5 3", "dashdot": "7 3 1.5 3", "longdash": "11 4"}


@dataclass(frozen=True)
class Style:
    """How an arm is drawn.

    `rgb` is `colour` as red, green and blue, such as `0,114,178`. `dash` and `symbol` are Plotly's
    names of the line's dash and the points' symbol.
    """

    colour: str
    rgb: str
    dash: str
    symbol: str


def style_arms(arms: Sequence[LabArm]) -> dict[str, Style]:
    """Return the arms' styles by name.

    The arm 4/4 looks like the site's arm `swarm`, and 8/0 like `isolated`. The other arms get
    other styles; the first twelve of them differ in colour or dash.
    """
    styles = {name: Style(*STYLES[arm], symbol) for name, (arm, symbol) in _FIXED_STYLES.items()}
    for place, name in enumerate(arm.name for arm in arms if arm.name not in _FIXED_STYLES):
        colour, rgb = _COLOURS[place % len(_COLOURS)]
        symbol = _SYMBOLS[place % len(_SYMBOLS)]
        styles[name] = Style(colour, rgb, _DASHES[place % len(_DASHES)], symbol)
    return {arm.name: styles[arm.name] for arm in arms}


def draw_curves(
    curves: Mapping[str, LabCurve], *, styles: Mapping[str, Style], title: str
) -> Figure:
    """Draw each arm's curve, with its intervals as a band; `title` is the title of the y axis."""
    bands = [
        draw_band(curve.rounds, curve.low, curve.high, rgb=styles[name].rgb)
        for name, curve in curves.items()
        if curve.low
    ]
    rounds = [number for curve in curves.values() for number in curve.rounds]
    return {
        "data": [*bands, *(_line(name, curve, styles[name]) for name, curve in curves.items())],
        "layout": layout_shares(rounds, title=title, over=_("training round")),
    }


def _line(name: str, curve: LabCurve, style: Style) -> Figure:
    line = draw_line(curve.rounds, curve.mean, name=name, colour=style.colour, dash=style.dash)
    if not curve.low:
        return line | {"hovertemplate": "%{y:.3f}"}
    return line | {
        "customdata": [list(ends) for ends in zip(curve.low, curve.high, strict=True)],
        "hovertemplate": isolate(
            _("%{y:.3f}, 95 % interval %{customdata[0]:.3f}–%{customdata[1]:.3f}")
        ),
    }


def draw_onset(report: PublishedReport, onset: LabOnset) -> Figure:
    """Draw an arm's difference from the baseline over rounds, with the range expected by chance.

    The range is a band around 0. If there is a round from which the difference stays outside the
    band to the end, a vertical line marks this round.
    """
    title = _("%(arm)s minus %(against)s") % {"arm": onset.arm, "against": report.baseline}
    style = style_arms(report.arms)[onset.arm]
    chance = draw_band(onset.rounds, [-end for end in onset.band], onset.band, rgb=_CHANCE)
    line = draw_line(
        onset.rounds, onset.difference, name=title, colour=style.colour, dash=style.dash
    )
    layout = make_layout(
        xaxis=count_axis(onset.rounds, title=_("training round")),
        yaxis={"title": {"text": isolate(_("difference in own reward"))}, "tickformat": ".2~r"},
    )
    if onset.stays is not None:
        layout["shapes"] = [_vertical_line(onset.stays)]
    return {
        "data": [
            chance | {"name": isolate(_("range expected by chance")), "showlegend": True},
            line | {"hovertemplate": "%{y:.3f}"},
        ],
        "layout": layout,
    }


def _vertical_line(at: int) -> Figure:
    """Return a dotted vertical line at x = `at`, as high as the figure."""
    ends = {"x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
    return {
        "type": "line",
        **ends,
        "line": {"dash": "dot", "width": 1.5, "color": f"rgb({_CHANCE})"},
    }


def draw_mechanism(report: PublishedReport) -> Figure:
    """Draw a point for each arm: its gain against its informative rollouts.

    x is the arm's mean number of informative rollouts per training set. y is g - 1, where g is the
    arm's gain in own reward. If an arm has no comparison in own reward (the baseline has none), its
    y is 0. If an arm has a comparison whose gain is None, it gets no point.
    """
    data, styles = [], style_arms(report.arms)
    for arm in report.arms:
        found = report.gains.get(arm.name)
        gain = found.gain if found else 1.0
        if gain is None:
            continue
        point = _point(arm, styles[arm.name], x=arm.informative_in_set, y=gain - 1)
        point |= _error_bars(found) if found else {}
        data.append(point | {"hovertemplate": "%{x:.2f}, %{y:+.0%}"})
    over = _("gain over %(baseline)s") % {"baseline": report.baseline}
    layout = make_layout(
        xaxis=share_axis(title=_("informative rollouts per training set")),
        yaxis={"title": {"text": isolate(over)}, "tickformat": "+.0%"},
    )
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def _error_bars(found: LabComparison) -> Figure:
    if found.gain is None or found.gain_low is None or found.gain_high is None:
        return {}
    ends = {"array": [found.gain_high - found.gain], "arrayminus": [found.gain - found.gain_low]}
    return {"error_y": {"type": "data", **ends, "thickness": 1.2}}


def draw_cost(arms: Sequence[LabArm]) -> Figure:
    """Draw a mark for each arm: x is tokens, y is bytes, and the mark's size shows own reward."""
    styles = style_arms(arms)
    largest = max((arm.own.value for arm in arms), default=0.0)
    data = [
        _point(
            arm, styles[arm.name], x=arm.tokens, y=arm.bytes, size=_diameter(arm, largest=largest)
        )
        | {
            "customdata": [arm.own.value],
            "hovertemplate": isolate(
                _("%{x:.3s} tokens, %{y:.3s}B, own reward %{customdata:.3~g}")
            ),
        }
        for arm in arms
    ]
    layout = make_layout(
        xaxis=_from_zero(_("tokens generated by all nodes")),
        yaxis=_from_zero(_("bytes sent and received")),
    )
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def _diameter(arm: LabArm, *, largest: float) -> float:
    part = sqrt(max(0.0, arm.own.value) / largest) if largest > 0 else 0.0
    return round(_MIN_DIAMETER + (_MAX_DIAMETER - _MIN_DIAMETER) * part, 1)


def _from_zero(title: str) -> Figure:
    return {"title": {"text": isolate(title)}, "rangemode": "tozero", "tickformat": "~s"}


def _point(arm: LabArm, style: Style, *, x: float, y: float, size: float = _MARK) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": isolate(arm.name),
        "x": [x],
        "y": [y],
        "marker": {
            "color": style.colour,
            "symbol": style.symbol,
            "size": size,
            # Marks may overlap.
            "opacity": 0.85,
        },
    }


# ---- a small picture without scripts


@dataclass(frozen=True)
class SketchedLine:
    """An arm's line and band as points of SVG, `x,y x,y …`; `band` is empty without intervals.

    `last` is the curve's last value, `dash` an SVG dash array. The name is written at `label_y`.
    """

    name: str
    last: float
    colour: str
    dash: str
    points: str
    band: str
    label_y: str


@dataclass(frozen=True)
class Sketch:
    """A small picture with a line for each arm over `rounds` rounds; its measures are in SVG units.

    Lines run from `left` to `right` above `floor`; names are at `label_x`, labels of the x axis at
    `axis_y`.
    """

    lines: list[SketchedLine]
    rounds: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    floor: int = _FLOOR
    label_x: int = _RIGHT + 8
    axis_y: int = _FLOOR + 20

    @property
    def banded(self) -> bool:
        """Whether any line has a band."""
        return any(line.band for line in self.lines)


def draw_sketch(curves: Mapping[str, LabCurve], *, styles: Mapping[str, Style]) -> Sketch:
    """Draw each arm's curve on a y axis that begins at 0. There must be at least one curve."""
    rounds = max(curve.rounds[-1] for curve in curves.values())
    top = max([0.0, *(value for c in curves.values() for value in [*c.mean, *c.high])]) or 1.0

    def place(at: int, value: float) -> str:
        x = _LEFT + (_RIGHT - _LEFT) * at / rounds
        return f"{x:.1f},{_height(value / top):.1f}"

    ends = _spread({name: _height(curve.mean[-1] / top) for name, curve in curves.items()})
    lines = []
    for name, curve in curves.items():
        kept = thin(len(curve.rounds), about=_POINTS)
        at = [curve.rounds[i] for i in kept]
        lows = [place(x, curve.low[i]) for x, i in zip(at, kept, strict=True) if curve.low]
        highs = [place(x, curve.high[i]) for x, i in zip(at, kept, strict=True) if curve.high]
        lines.append(
            SketchedLine(
                name=name,
                last=curve.mean[-1],
                colour=styles[name].colour,
                dash=DASHES[styles[name].dash],
                points=" ".join(place(x, curve.mean[i]) for x, i in zip(at, kept, strict=True)),
                band=" ".join([*highs, *reversed(lows)]),
                label_y=f"{ends[name]:.1f}",
            )
        )
    return Sketch(lines, rounds)


def _height(part: float) -> float:
    return _FLOOR - (_FLOOR - _TOP) * part


def _spread(heights: Mapping[str, float]) -> dict[str, float]:
    """Return for each line's name a y at which it overlaps no other name.

    `heights` maps each name to the y at which its line ends.
    """
    spread: dict[str, float] = {}
    free = float(_FLOOR)
    for name, y in sorted(heights.items(), key=lambda end: -end[1]):
        spread[name] = min(y, free)
        free = spread[name] - _ROW
    return spread
