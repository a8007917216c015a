"""The figures of a lab report, each with the table that says the same; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from swarm_web.dashboard.charts.lab import (
    draw_cost,
    draw_curves,
    draw_mechanism,
    draw_onset,
    style_arms,
)
from swarm_web.dashboard.reports import amounts
from swarm_web.dashboard.reports.drawings import Drawing, Value
from swarm_web.errors import RequestError
from swarm_web.lab.shape import LabCurve, LabOnset, PublishedReport

# So many rows has the table of a curve, about.
_ROWS = 20


@dataclass(frozen=True)
class CurveWords:
    """What a curve is called, what its axis says, and what a reader must know of it."""

    title: Promise
    axis: Promise
    note: Promise


_SMOOTH = gettext_lazy("Each point is the mean of ten rounds.")
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
    """A curve's drawing with its words, and its name in the figure's address."""

    key: str
    words: CurveWords
    drawing: Drawing


def draw_report(report: PublishedReport) -> list[CurveDrawing]:
    """Return the drawings of all curves that were measured."""
    return [
        CurveDrawing(key, words, drawing)
        for key, words in CURVES.items()
        if (drawing := _draw_curve(report, key)) is not None
    ]


def draw_cumulative(report: PublishedReport) -> Drawing:
    """Return the main figure: every report has it."""
    return _draw_known(report, "cumulative", _curves_of(report, "cumulative"))


def draw_chart(report: PublishedReport, chart: str, *, arm: str | None) -> Drawing:
    """Return the drawing of that name; `arm` is whose difference is drawn. Raises RequestError."""
    drawn: Drawing | None
    if chart == "difference":
        onset = choose_onset(report, arm)
        drawn = draw_difference(report, onset) if onset else None
    elif chart == "mechanism":
        drawn = tell_mechanism(report)
    elif chart == "cost":
        drawn = tell_cost(report)
    else:
        drawn = _draw_curve(report, chart) if chart in CURVES else None
    if drawn is None:
        raise RequestError(
            "query.chart",
            f"There is no chart {chart[:40]!r} of this report.",
            fix=f"Use one of {', '.join([*CURVES, 'difference', 'mechanism', 'cost'])}.",
        )
    return drawn


def choose_onset(report: PublishedReport, arm: str | None) -> LabOnset | None:
    """Return an arm's difference over rounds: the first one's if none is asked for."""
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


def draw_difference(report: PublishedReport, onset: LabOnset) -> Drawing:
    """Draw an arm's difference from the baseline over rounds, with the band of chance."""
    style = style_arms([arm.name for arm in report.arms])[onset.arm]
    return Drawing(
        draw=partial(draw_onset, onset, against=report.baseline, style=style),
        columns=[_("Round"), _("Difference"), _("± expected by chance")],
        rows=[
            [
                onset.rounds[at],
                amounts.write_signed(onset.difference[at]),
                amounts.write_amount(onset.band[at]),
            ]
            for at in _few(len(onset.rounds))
        ],
    )


def tell_mechanism(report: PublishedReport) -> Drawing:
    """Draw each arm's gain over what its training sets could teach."""
    rows: list[list[Value]] = []
    for arm in report.arms:
        found = report.gains.get(arm.name)
        low, high = (found and amounts.write_change_ends(found)) or (None, None)
        gain = amounts.write_change(found) if found else _("baseline")
        rows.append([arm.name, amounts.write_amount(arm.informative_in_set), gain, low, high])
    return Drawing(
        draw=partial(draw_mechanism, report, styles=style_arms([arm.name for arm in report.arms])),
        columns=[
            _("Arm"),
            _("Informative per set"),
            _("Gain"),
            _("95 %, lower bound"),
            _("95 %, upper bound"),
        ],
        rows=rows,
    )


def tell_cost(report: PublishedReport) -> Drawing:
    """Draw what each arm costs in generation and communication."""
    return Drawing(
        draw=partial(draw_cost, report.arms, styles=style_arms([arm.name for arm in report.arms])),
        columns=[_("Arm"), _("Tokens"), _("Bytes exchanged"), _("Own reward")],
        rows=[
            [
                arm.name,
                amounts.write_amount(arm.tokens),
                amounts.write_bytes(arm.bytes),
                amounts.write_amount(arm.own.value),
            ]
            for arm in report.arms
        ],
    )


def _curves_of(report: PublishedReport, key: str) -> dict[str, LabCurve]:
    found = {arm.name: getattr(arm.curves, key) for arm in report.arms}
    return {name: curve for name, curve in found.items() if curve is not None}


def _draw_curve(report: PublishedReport, key: str) -> Drawing | None:
    curves = _curves_of(report, key)
    return _draw_known(report, key, curves) if curves else None


def _draw_known(report: PublishedReport, key: str, curves: Mapping[str, LabCurve]) -> Drawing:
    styles = style_arms([arm.name for arm in report.arms])
    banded = any(curve.low for curve in curves.values())
    columns = [_("Round")]
    for name in curves:
        columns += [name, "95 %"] if banded else [name]
    return Drawing(
        draw=partial(draw_curves, curves, styles=styles, title=str(CURVES[key].axis)),
        columns=columns,
        rows=_tabulate(curves, banded=banded),
    )


def _tabulate(curves: Mapping[str, LabCurve], *, banded: bool) -> list[list[Value]]:
    longest = max(curves.values(), key=lambda curve: len(curve.rounds)).rounds
    places = {name: {n: at for at, n in enumerate(curve.rounds)} for name, curve in curves.items()}
    rows: list[list[Value]] = []
    for number in (longest[at] for at in _few(len(longest))):
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


def _few(count: int) -> Sequence[int]:
    """Return an even choice of so many places, the last one among them."""
    return range(count - 1, -1, -max(1, count // _ROWS))[::-1]
