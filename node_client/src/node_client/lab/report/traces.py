"""Plotly's traces and axes, without colours.

A trace's `meta.ink` names a colour of the page's theme, so that a figure can follow a change of the
theme. Arms also differ by dash and symbol.
"""

from typing import Any

from node_client.lab.report.shape import ArmReport, Curve

# Number of colours for arms in the theme; further arms reuse them with another dash.
INKS = 7
DASHES = ("solid", "dash", "dot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")
# A curve with at most this number of points has a symbol at each.
MAX_MARKED_POINTS = 25

Trace = dict[str, Any]


def plot_line(curve: Curve, number: int, name: str) -> Trace:
    """Return the line of an arm. `number` is its place among the report's arms, from 0.

    It decides colour, dash and symbol, here and in the functions below.
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
        "marker": {"symbol": symbol_of(number), "size": 7},
        "meta": {"ink": f"--arm-{number % INKS}"},
    }


def plot_band(curve: Curve, number: int, name: str) -> list[Trace]:
    """Return the trace of the band around a curve, in a list; empty if the curve has no band."""
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


def plot_point(
    arm: ArmReport, number: int, *, x: float | None, y: float | None, ink: str | None = None
) -> Trace:
    """Return an arm as a point. If x and y are None, only the legend shows it.

    `ink` is a colour of the theme; by default it is the arm's.
    """
    return {
        "type": "scatter",
        "mode": "markers",
        "name": arm.name,
        "x": [x],
        "y": [y],
        "marker": {"symbol": symbol_of(number), "size": 12},
        "meta": {"ink": ink or f"--arm-{number % INKS}"},
    }


def symbol_of(number: int) -> str:
    """Return the symbol of the arm with this number."""
    return SYMBOLS[number % len(SYMBOLS)]


def make_layout(x: str, y: str) -> dict[str, Any]:
    """Return the layout of two axes with the titles `x` and `y`; both ranges include zero."""
    return {
        "xaxis": {"title": {"text": x}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero"},
    }
