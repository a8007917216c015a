"""The figures of a report, as Plotly's data and layout, each with a table of the same data.

The trace of an arm has no colours. Its `meta.ink` names a colour of the page's theme, so that a
figure can follow a change of the theme. Arms also differ by dash and symbol.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from node_client.lab.report.claims import format_seeds, gains_in_own_reward
from node_client.lab.report.numbers import (
    format_bytes,
    format_gain,
    format_gain_interval,
    format_number,
    format_signed,
    spaced_places,
)
from node_client.lab.report.shape import ArmComparison, ArmReport, Curve, OnsetReport, Report

# Number of colours for arms in the theme; further arms reuse them with another dash.
INKS = 7
DASHES = ("solid", "dash", "dot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")
# A curve with at most this number of points has a symbol at each.
MAX_MARKED_POINTS = 25
# Number of rows in the table of a curve.
_ROWS = 11

Trace = dict[str, Any]


class Table(Struct, frozen=True):
    """A table of text: column headings, and rows that begin with a round or an arm's name."""

    head: list[str]
    rows: list[list[str]]


class PlotlyFigure(Struct, frozen=True):
    """One figure: Plotly's data and layout, and a table of its numbers.

    The table of a curve has only some of the curve's rounds. `key` identifies the figure in the
    page.
    """

    key: str
    title: str
    caption: str
    data: list[Trace]
    layout: dict[str, Any]
    table: Table


def plot_all(report: Report) -> list[PlotlyFigure]:
    """Return the figures of curves over rounds, then two figures in which each arm is one point."""
    return [*_plot_curves(report), _plot_mechanism(report), _plot_cost(report)]


def _plot_curves(report: Report) -> Iterator[PlotlyFigure]:
    """Yield a figure for each curve that was measured in any arm."""
    band = "Bands: 95 % intervals over seeds." if report.arms[0].curves.own.low else ""
    smooth = "Averaged over ten rounds."
    for key, title, unit, caption in (
        ("cumulative", "Cumulative own reward", "cumulative own reward", band),
        ("own", "Own reward by round", "own reward", f"{smooth} {band}"),
        ("held_out", "Held-out pass@1", "pass@1", f"On questions that nobody trains on. {band}"),
        ("informative", "Informative own rollouts", "share of own rollouts",
         f"Rollouts whose rewards differ. {smooth}"),
        ("length", "Length of completions", "tokens", smooth),
        ("reflection", "Completions that reflect", "share of completions",
         f"The share with the commonest of the patterns that are looked for. {smooth}"),
        ("poisoned", "Completions with the planted text", "share of completions", smooth),
    ):  # fmt: skip
        curves = {arm.name: getattr(arm.curves, key) for arm in report.arms}
        available = {name: curve for name, curve in curves.items() if curve is not None}
        if available:
            yield _plot_lines(report, available, key=key, title=title, unit=unit, caption=caption)


def _plot_lines(
    report: Report, curves: dict[str, Curve], *, key: str, title: str, unit: str, caption: str
) -> PlotlyFigure:
    data = []
    for place, arm in enumerate(report.arms):
        if curve := curves.get(arm.name):
            data += [*_plot_band(curve, place, arm.name), _plot_line(curve, place, arm.name)]
    rounds = max((curve.rounds for curve in curves.values()), key=len)
    return PlotlyFigure(
        key=key,
        title=title,
        caption=caption.strip(),
        data=data,
        layout=_make_layout("round", unit),
        table=Table(
            head=["round", *curves],
            rows=[
                [str(rounds[place]), *(_at(curve, rounds[place]) for curve in curves.values())]
                for place in spaced_places(len(rounds), most=_ROWS)
            ],
        ),
    )


def plot_onset(onset: OnsetReport, report: Report) -> PlotlyFigure:
    """Return a figure of an arm's own reward minus the baseline's.

    The figure also shows the band of chance. In the rounds in which the difference is outside the
    band, it is significant (`OnsetReport`).
    """
    place = [arm.name for arm in report.arms].index(onset.arm)
    chance = Curve(onset.rounds, onset.difference, [-each for each in onset.band], onset.band)
    line = _plot_line(Curve(onset.rounds, onset.difference), place, onset.arm)
    layout = _make_layout("round", "difference in own reward")
    if onset.stays is not None:
        # A line over the full height.
        mark = {"type": "line", "x0": onset.stays, "x1": onset.stays, "y0": 0, "y1": 1}
        layout["shapes"] = [{**mark, "yref": "paper", "line": {"dash": "dot", "width": 1.5}}]
    return PlotlyFigure(
        key=f"onset-{place}",
        title=f"{onset.arm} minus {report.baseline}",
        caption=_describe_onset(onset),
        data=[*_plot_band(chance, 0, "by chance alone"), line],
        layout=layout,
        table=Table(
            head=["round", "difference", "± by chance"],
            rows=[
                [
                    str(onset.rounds[at]),
                    format_signed(onset.difference[at]),
                    format_number(onset.band[at]),
                ]
                for at in spaced_places(len(onset.rounds), most=_ROWS)
            ],
        ),
    )


def _describe_onset(onset: OnsetReport) -> str:
    n = f"n = {format_seeds(onset.seeds)}."
    if onset.stays is not None:
        return f"Beyond chance from round {onset.stays} to the end. {n}"
    if onset.first is not None:
        return f"First beyond chance in round {onset.first}, but not to the end. {n}"
    return f"Never beyond chance. {n}"


def _plot_mechanism(report: Report) -> PlotlyFigure:
    gains = gains_in_own_reward(report.comparisons)
    shown = [(place, arm) for place, arm in enumerate(report.arms) if _gain(arm, gains) is not None]
    data = []
    for place, arm in shown:
        found = gains.get(arm.name)
        point = _plot_point(arm, place, x=arm.informative_in_set, y=_gain(arm, gains))
        if found and found.gain and found.gain_low and found.gain_high:
            point["error_y"] = {
                "type": "data",
                "array": [found.gain_high - found.gain],
                "arrayminus": [found.gain - found.gain_low],
                "thickness": 1.2,
            }
        data.append(point)
    return PlotlyFigure(
        key="mechanism",
        title="Informative rollouts in a training set, and the gain",
        caption="Gain: the ratio of cumulative own rewards, with 95 % intervals if seeds suffice.",
        data=data,
        layout=_make_layout(
            "informative rollouts in a training set", f"gain over {report.baseline}"
        ),
        table=Table(
            head=["arm", "informative in a set", "gain", "95 % interval"],
            rows=[
                [arm.name, format_number(arm.informative_in_set), *_describe_gain(arm, gains)]
                for _, arm in shown
            ],
        ),
    )


def _plot_cost(report: Report) -> PlotlyFigure:
    """Return the figure of bytes against tokens: one point for each arm, coloured by own reward."""
    rewards = [arm.own.value for arm in report.arms]
    points = {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": [arm.tokens for arm in report.arms],
        "y": [arm.bytes for arm in report.arms],
        "text": [arm.name for arm in report.arms],
        "marker": {
            "symbol": [_symbol_of(place) for place in range(len(rewards))],
            "size": 16,
            "color": rewards,
            "coloraxis": "coloraxis",
        },
        "meta": {"coloured": True},
    }
    # A legend cannot name the points of one trace.
    keys = [
        _plot_point(arm, place, x=None, y=None, ink="--quiet")
        for place, arm in enumerate(report.arms)
    ]
    layout = _make_layout("tokens generated by all nodes", "bytes sent and received")
    layout["coloraxis"] = {
        "colorscale": "Cividis",
        "cmin": min(rewards),
        "cmax": max(rewards),
        "colorbar": {
            "title": {"text": "own reward", "side": "right", "font": {"size": 13}},
            "thickness": 12,
        },
    }
    return PlotlyFigure(
        key="cost",
        title="What it costs: tokens generated against bytes exchanged",
        caption="Colour: cumulative own reward.",
        data=[points, *keys],
        layout=layout,
        table=Table(
            head=["arm", "tokens", "exchanged", "cumulative own reward"],
            rows=[
                [
                    arm.name,
                    format_number(arm.tokens),
                    format_bytes(arm.bytes),
                    format_number(arm.own.value),
                ]
                for arm in report.arms
            ],
        ),
    )


def _gain(arm: ArmReport, gains: dict[str, ArmComparison]) -> float | None:
    """Return an arm's gain in own reward, 1 for the baseline itself.

    Returns None if the baseline's own reward is 0.
    """
    return gains[arm.name].gain if arm.name in gains else 1.0


def _describe_gain(arm: ArmReport, gains: dict[str, ArmComparison]) -> list[str]:
    if arm.name not in gains:
        return ["baseline", ""]
    found = gains[arm.name]
    return [format_gain(found.gain), format_gain_interval(found.gain_low, found.gain_high)]


def _at(curve: Curve, number: int) -> str:
    """Return a curve's value in round `number` as text, with its interval if it has one.

    The text is empty if the curve has no point in this round.
    """
    if number not in curve.rounds:
        return ""
    at = curve.rounds.index(number)
    value = format_number(curve.mean[at])
    if not curve.low:
        return value
    return f"{value} ({format_number(curve.low[at])} to {format_number(curve.high[at])})"


def _plot_line(curve: Curve, number: int, name: str) -> Trace:
    """Return the line of an arm.

    `number`, the index of the arm in the report, determines the colour, dash and symbol.
    """
    is_marked = len(curve.rounds) <= MAX_MARKED_POINTS
    return {
        "type": "scatter",
        "mode": "lines+markers" if is_marked else "lines",
        "name": name,
        "x": curve.rounds,
        "y": curve.mean,
        "legendgroup": name,
        "line": {"width": 2, "dash": DASHES[number // INKS % len(DASHES)]},
        "marker": {"symbol": _symbol_of(number), "size": 7},
        "meta": {"ink": f"--arm-{number % INKS}"},
    }


def _plot_band(curve: Curve, number: int, name: str) -> list[Trace]:
    """Return a list with the trace of the band around a curve, empty if the curve has no band."""
    if not curve.low:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [*curve.rounds, *reversed(curve.rounds)],
            "y": [*curve.high, *reversed(curve.low)],
            "legendgroup": name,
            "showlegend": False,
            "hoverinfo": "skip",
            "fill": "toself",
            "line": {"width": 0},
            "meta": {"ink": f"--arm-{number % INKS}", "band": True},
        }
    ]


def _plot_point(
    arm: ArmReport, number: int, *, x: float | None, y: float | None, ink: str | None = None
) -> Trace:
    """Return the point of an arm. If x and y are None, it appears only in the legend.

    `number` is the index of the arm in the report. `ink` names a colour of the page's theme, by
    default the arm's colour.
    """
    return {
        "type": "scatter",
        "mode": "markers",
        "name": arm.name,
        "x": [x],
        "y": [y],
        "marker": {"symbol": _symbol_of(number), "size": 12},
        "meta": {"ink": ink or f"--arm-{number % INKS}"},
    }


def _symbol_of(number: int) -> str:
    """Return the marker symbol of the arm with this index in the report."""
    return SYMBOLS[number % len(SYMBOLS)]


def _make_layout(x: str, y: str) -> dict[str, Any]:
    """Return the layout of two axes with the titles `x` and `y`; both ranges include zero."""
    return {
        "xaxis": {"title": {"text": x}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero"},
    }
