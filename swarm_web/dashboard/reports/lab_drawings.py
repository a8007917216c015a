"""The charts of a lab report with their tables, and the formatting of its numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from swarm_web.core.errors import RequestError
from swarm_web.dashboard.charts.lab import (
    draw_cost,
    draw_curves,
    draw_mechanism,
    draw_onset,
    style_arms,
)
from swarm_web.dashboard.charts.parts import TabledChart, Value, thin
from swarm_web.lab.shape import LabComparison, LabCurve, LabOnset, PublishedReport

NONE = "–"
_MINUS = "\u2212"
_THIN = "\u202f"
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
# Approximate number of rows in the table of a curve.
_ROWS = 20
_SMOOTH = gettext_lazy("Each point is the mean of ten rounds.")


# ---- numbers


def write_gain(ratio: float | None) -> str:
    """Write a ratio as a change: `+94 %` for 1.94; None is a dash."""
    if ratio is None:
        return NONE
    return f"{_sign(ratio - 1)}{abs(ratio - 1):.0%}".replace("%", f"{_THIN}%")


def write_amount(value: float | None) -> str:
    """Write a number with at most three significant digits, such as `.25`; None is a dash.

    A number whose absolute value is at least 999.5 is rounded to a whole number. It keeps all of
    its digits, in groups of three: `1 234`.
    """
    if value is None:
        return NONE
    if value < 0:
        return _MINUS + write_amount(-value)
    if value >= 999.5:
        return f"{value:,.0f}".replace(",", _THIN)
    text = f"{value:.3g}"
    text = text if "e" not in text else f"{value:.1e}"
    return text.removeprefix("0") if text.startswith("0.") else text


def write_signed(value: float) -> str:
    """Write a difference as `write_amount` does, always with its sign."""
    return _sign(value) + write_amount(abs(value))


def write_bytes(count: float) -> str:
    """Write a number of bytes in GB, MB or kB, the first of these that it reaches, or else in B.

    A number that `write_amount` would round up to 1000 of a unit is written as 1 of the next one.
    """
    for size, unit in _SIZES:
        if count >= 0.9995 * size:
            return f"{write_amount(count / size)}{_THIN}{unit}"
    return f"{count:.0f}{_THIN}B"


def write_change(found: LabComparison) -> str:
    """Write an arm's gain over the other arm, such as `+94 %`.

    If the other arm's mean outcome is 0, there is no gain. The arm's mean outcome minus that of the
    other arm is then written instead.
    """
    return write_signed(found.difference) if found.gain is None else write_gain(found.gain)


def write_change_ends(found: LabComparison) -> tuple[str, str] | None:
    """Return the 95 % interval of the change, as two texts: the lower and the upper end.

    The change is that of `write_change`. Returns None if there is no interval.
    """
    if found.gain is None:
        return _write_ends(found.difference_low, found.difference_high, write_signed)
    return _write_ends(found.gain_low, found.gain_high, write_gain)


def _write_ends(
    low: float | None, high: float | None, write: Callable[[float], str]
) -> tuple[str, str] | None:
    return None if low is None or high is None else (write(low), write(high))


def _sign(value: float) -> str:
    return _MINUS if value < 0 else "+"


# ---- charts


@dataclass(frozen=True)
class CurveWords:
    """The title of a curve's chart, the label of its y axis, and a note for readers."""

    title: Promise
    axis: Promise
    note: Promise


CURVES: dict[str, CurveWords] = {
    "cumulative": CurveWords(
        gettext_lazy("Cumulative own reward"),
        gettext_lazy("cumulative own reward"),
        gettext_lazy(
            "A node’s own completions only, scored before they are trained on; other "
            "nodes’ rollouts do not count."
        ),
    ),
    "own": CurveWords(gettext_lazy("Own reward by round"), gettext_lazy("own reward"), _SMOOTH),
    "held_out": CurveWords(
        gettext_lazy("Held-out pass@1"),
        gettext_lazy("pass@1"),
        gettext_lazy("On fixed questions that no node trains on."),
    ),
    "length": CurveWords(
        gettext_lazy("Length of completions"), gettext_lazy("tokens per completion"), _SMOOTH
    ),
    "reflection": CurveWords(
        gettext_lazy("Completions with reflection"), gettext_lazy("share of completions"), _SMOOTH
    ),
    "poisoned": CurveWords(
        gettext_lazy("Completions with the planted text"),
        gettext_lazy("share of completions"),
        _SMOOTH,
    ),
}


@dataclass(frozen=True)
class CurveDrawing:
    """The chart of a curve, with its texts; `key` is its name in the figure's address."""

    key: str
    words: CurveWords
    drawing: TabledChart


def draw_report(report: PublishedReport) -> list[CurveDrawing]:
    """Return a chart for each kind of curve in CURVES that at least one arm has."""
    return [
        CurveDrawing(key, words, drawing)
        for key, words in CURVES.items()
        if (drawing := draw_curve(report, key)) is not None
    ]


def draw_chart(report: PublishedReport, chart: str, *, arm: str | None) -> TabledChart:
    """Return the chart named `chart`: a key of CURVES, `difference`, `mechanism` or `cost`.

    `arm` is used by the chart `difference` only: it shows this arm, by default the first one.
    Raises RequestError if the report has no such chart, or no difference of this arm.
    """
    drawn: TabledChart | None
    if chart == "difference":
        onset = choose_onset(report, arm)
        drawn = draw_difference(report, onset) if onset else None
    elif chart == "mechanism":
        drawn = chart_mechanism(report)
    elif chart == "cost":
        drawn = chart_cost(report)
    else:
        drawn = draw_curve(report, chart) if chart in CURVES else None
    if drawn is None:
        raise RequestError(
            "query.chart",
            f"There is no chart {chart[:40]!r} of this report.",
            fix=f"Use one of {', '.join([*CURVES, 'difference', 'mechanism', 'cost'])}.",
        )
    return drawn


def choose_onset(report: PublishedReport, arm: str | None) -> LabOnset | None:
    """Return an arm's difference from the baseline over rounds.

    If `arm` is None, return the report's first such difference, or None if it has none. Raises
    RequestError if the report has none for the given arm.
    """
    if arm is None:
        return next(iter(report.onsets), None)
    for onset in report.onsets:
        if onset.arm == arm:
            return onset
    raise RequestError(
        "query.arm",
        f"No arm {arm[:80]!r} is compared in this report.",
        fix="Take an arm's name from the report's page.",
    )


def draw_difference(report: PublishedReport, onset: LabOnset) -> TabledChart:
    """Draw an arm's difference from the baseline over rounds, with the band expected by chance."""
    return TabledChart(
        draw=partial(draw_onset, report, onset),
        columns=[_("Round"), _("Difference"), _("± expected by chance")],
        rows=[
            [
                onset.rounds[at],
                write_signed(onset.difference[at]),
                write_amount(onset.band[at]),
            ]
            for at in thin(len(onset.rounds), about=_ROWS)
        ],
    )


def chart_mechanism(report: PublishedReport) -> TabledChart:
    """Draw each arm's gain against the number of informative rollouts in its training sets."""
    rows: list[list[Value]] = []
    for arm in report.arms:
        found = report.gains.get(arm.name)
        low, high = (found and write_change_ends(found)) or (None, None)
        gain = write_change(found) if found else _("baseline")
        rows.append([arm.name, write_amount(arm.informative_in_set), gain, low, high])
    return TabledChart(
        draw=partial(draw_mechanism, report),
        columns=[
            _("Arm"),
            _("Informative per set"),
            _("Gain"),
            _("95 %, lower bound"),
            _("95 %, upper bound"),
        ],
        rows=rows,
    )


def chart_cost(report: PublishedReport) -> TabledChart:
    """Draw each arm's costs: tokens generated, and bytes sent and received."""
    return TabledChart(
        draw=partial(draw_cost, report.arms),
        columns=[_("Arm"), _("Tokens"), _("Bytes exchanged"), _("Own reward")],
        rows=[
            [
                arm.name,
                write_amount(arm.tokens),
                write_bytes(arm.bytes),
                write_amount(arm.own.value),
            ]
            for arm in report.arms
        ],
    )


def draw_curve(report: PublishedReport, key: str) -> TabledChart | None:
    """Return the chart of the curve named `key`, with a line for each arm that has this curve.

    `key` is a key of CURVES. Returns None if no arm has the curve.
    """
    measured = {arm.name: getattr(arm.curves, key) for arm in report.arms}
    curves: dict[str, LabCurve] = {name: curve for name, curve in measured.items() if curve}
    if not curves:
        return None
    banded = any(curve.low for curve in curves.values())
    columns = [_("Round")]
    for name in curves:
        columns += [name, "95 %"] if banded else [name]
    axis = str(CURVES[key].axis)
    return TabledChart(
        draw=partial(draw_curves, curves, styles=style_arms(report.arms), title=axis),
        columns=columns,
        rows=_tabulate(curves, banded=banded),
    )


def _tabulate(curves: Mapping[str, LabCurve], *, banded: bool) -> list[list[Value]]:
    longest = max(curves.values(), key=lambda curve: len(curve.rounds)).rounds
    places = {name: {n: at for at, n in enumerate(curve.rounds)} for name, curve in curves.items()}
    rows: list[list[Value]] = []
    for number in (longest[at] for at in thin(len(longest), about=_ROWS)):
        cells: list[Value] = [number]
        for name, curve in curves.items():
            at = places[name].get(number)
            cells.append(None if at is None else curve.mean[at])
            if banded:
                cells.append(
                    None if at is None or not curve.low else (curve.low[at], curve.high[at])
                )
        rows.append(cells)
    return rows
