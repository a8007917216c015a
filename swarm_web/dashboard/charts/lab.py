"""The figures of a lab report: its arms over rounds, and each arm as a point; pure."""

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
    lay_out,
    share_axis,
)
from swarm_web.lab.shape import LabArm, LabComparison, LabCurve, LabOnset, PublishedReport

# The arms of the paper that look as the site's arms do everywhere.
_KNOWN = {"4/4": ("swarm", "circle"), "8/0": ("isolated", "square")}
# Colours that no arm of the site has, readable on light and dark paper. As many dashes and symbols
# as share no factor with them: the first twelve arms differ in colour or dash.
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
_SMALLEST, _LARGEST = 10, 30


@dataclass(frozen=True)
class Style:
    """How an arm is drawn: colour, the same as red, green and blue, dash, and symbol as a point."""

    colour: str
    rgb: str
    dash: str
    symbol: str


def style_arms(names: Sequence[str]) -> dict[str, Style]:
    """Return each arm's style: 4/4 and 8/0 look as swarm and isolated nodes do on every page."""
    styles: dict[str, Style] = {}
    others = [name for name in names if name not in _KNOWN]
    for name, (arm, symbol) in _KNOWN.items():
        styles[name] = Style(*STYLES[arm], symbol)
    for place, name in enumerate(others):
        colour, rgb = _COLOURS[place % len(_COLOURS)]
        symbol = _SYMBOLS[place % len(_SYMBOLS)]
        styles[name] = Style(colour, rgb, _DASHES[place % len(_DASHES)], symbol)
    return {name: styles[name] for name in names}


def draw_curves(
    curves: Mapping[str, LabCurve], *, styles: Mapping[str, Style], title: str
) -> Figure:
    """Draw each arm's curve, bands behind lines; `title` says what is measured."""
    bands = [
        draw_band(curve.rounds, curve.low, curve.high, rgb=styles[name].rgb)
        for name, curve in curves.items()
        if curve.low
    ]
    rounds = [number for curve in curves.values() for number in curve.rounds]
    return {
        "data": [*bands, *(_line(name, curve, styles[name]) for name, curve in curves.items())],
        "layout": lay_out(
            xaxis=count_axis(rounds, title=_("training round")), yaxis=share_axis(title=title)
        ),
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


def draw_onset(onset: LabOnset, *, against: str, style: Style) -> Figure:
    """Draw an arm's difference from another one over rounds, on the band of chance around 0."""
    title = _("%(arm)s minus %(against)s") % {"arm": onset.arm, "against": against}
    chance = draw_band(onset.rounds, [-end for end in onset.band], onset.band, rgb=_CHANCE)
    line = draw_line(
        onset.rounds, onset.difference, name=title, colour=style.colour, dash=style.dash
    )
    layout = lay_out(
        xaxis=count_axis(onset.rounds, title=_("training round")),
        yaxis={"title": {"text": isolate(_("difference in own reward"))}, "tickformat": ".2~r"},
    )
    if onset.stays is not None:
        layout["shapes"] = [_upright(onset.stays)]
    return {
        "data": [
            chance | {"name": isolate(_("range expected by chance")), "showlegend": True},
            line | {"hovertemplate": "%{y:.3f}"},
        ],
        "layout": layout,
    }


def _upright(at: int) -> Figure:
    """Return a dotted line over the whole height."""
    ends = {"x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
    return {
        "type": "line",
        **ends,
        "line": {"dash": "dot", "width": 1.5, "color": f"rgb({_CHANCE})"},
    }


def draw_mechanism(report: PublishedReport, *, styles: Mapping[str, Style]) -> Figure:
    """Draw each arm's gain over the informative rollouts in its training sets."""
    data = []
    for arm in report.arms:
        found = report.gains.get(arm.name)
        gain = found.gain if found else 1.0
        if gain is None:
            continue
        point = _point(arm, styles[arm.name], x=arm.informative_in_set, y=gain - 1)
        point |= _error_bars(found) if found else {}
        data.append(point | {"hovertemplate": "%{x:.2f}, %{y:+.0%}"})
    over = _("gain over %(baseline)s") % {"baseline": report.baseline}
    layout = lay_out(
        xaxis=share_axis(title=_("informative rollouts per training set")),
        yaxis={"title": {"text": isolate(over)}, "tickformat": "+.0%"},
    )
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def _error_bars(found: LabComparison) -> Figure:
    if found.gain is None or found.gain_low is None or found.gain_high is None:
        return {}
    ends = {"array": [found.gain_high - found.gain], "arrayminus": [found.gain - found.gain_low]}
    return {"error_y": {"type": "data", **ends, "thickness": 1.2}}


def draw_cost(arms: Sequence[LabArm], *, styles: Mapping[str, Style]) -> Figure:
    """Draw what each arm costs, tokens against bytes; the area of a mark grows with its reward."""
    most = max((arm.own.value for arm in arms), default=0.0)
    data = [
        _point(arm, styles[arm.name], x=arm.tokens, y=arm.bytes, size=_diameter(arm, most=most))
        | {
            "customdata": [arm.own.value],
            "hovertemplate": isolate(
                _("%{x:.3s} tokens, %{y:.3s}B, own reward %{customdata:.3~g}")
            ),
        }
        for arm in arms
    ]
    layout = lay_out(
        xaxis=_from_zero(_("tokens generated by all nodes")),
        yaxis=_from_zero(_("bytes sent and received")),
    )
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def _diameter(arm: LabArm, *, most: float) -> float:
    part = sqrt(max(0.0, arm.own.value) / most) if most > 0 else 0.0
    return round(_SMALLEST + (_LARGEST - _SMALLEST) * part, 1)


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
            # Marks may cover each other.
            "opacity": 0.85,
        },
    }
