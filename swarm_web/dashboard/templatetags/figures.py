"""How figures look on pages: shares, intervals, rank ranges, sizes and moments.

Every filter answers an en dash for a figure that does not exist yet; a lookup that fails reaches
a filter as an empty string.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language_bidi
from django.utils.translation import gettext as _

from swarm_web.dashboard.charts.sparkline import Sparkline, draw_sparkline
from swarm_web.dashboard.reports.codes import name_code
from swarm_web.dashboard.reports.drawings import Value
from swarm_web.dashboard.reports.marks import Mark, describe_verdict
from swarm_web.dashboard.reports.reasons import advise

register = template.Library()
register.filter("advice", advise)
register.filter("code_name", name_code)
register.filter("verdict", describe_verdict)

NONE = "–"
MINUS = "\u2212"
SMALLEST_P = 0.001
# Unicode's marks around a run that reads from left to right in the midst of other text.
_ISOLATE, _END_OF_ISOLATE = "\u2066", "\u2069"
_SIZES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def _figure(text: str) -> str:
    """Keep a figure in one piece where text runs from right to left, and would turn a range round.

    Marks instead of elements: figures stand in titles and labels too.
    """
    return f"{_ISOLATE}{text}{_END_OF_ISOLATE}" if get_language_bidi() else text


@register.filter
def share(value: float | str | None) -> str:
    """Write a fraction of one with three decimals and no leading zero: `.347`."""
    if not isinstance(value, (int, float)):
        return NONE
    return _figure(f"{value:.3f}".removeprefix("0"))


@register.filter
def percent(value: float | str | None) -> str:
    """Write a fraction of one as whole percents: `35 %`."""
    if not isinstance(value, (int, float)):
        return NONE
    return _figure(f"{value:.0%}".replace("%", "\u202f%"))


@register.filter
def interval(bounds: tuple[float | None, float | None] | None) -> str:
    """Write an interval of fractions, such as .311 to .384."""
    if bounds is None or None in bounds:
        return NONE
    return _figure(f"{share(bounds[0])}–{share(bounds[1])}")


@register.filter
def value(cell: Value) -> str:
    """Write a cell of a chart's table: fractions as shares, pairs as intervals, whole numbers."""
    if isinstance(cell, tuple):
        return interval(cell)
    return share(cell) if isinstance(cell, float) or cell is None else str(cell)


@register.filter
def ranks(bounds: tuple[int, int] | None) -> str:
    """Write a rank range, or one number when the rank is certain."""
    if bounds is None:
        return NONE
    best, worst = bounds
    return str(best) if best == worst else _figure(f"{best}–{worst}")


@register.filter
def points(difference: float | str | None) -> str:
    """Write a difference of fractions as signed points, hundredths of one: `+12.3`."""
    if not isinstance(difference, (int, float)):
        return NONE
    rounded = round(100 * difference, 1)
    sign = "+" if rounded > 0 else MINUS if rounded < 0 else ""
    return _figure(f"{sign}{abs(rounded):.1f}")


@register.filter
def points_interval(bounds: tuple[float, float] | None) -> str:
    """Write an interval of differences in points: `+1.0 to +4.2`."""
    if not bounds:
        return NONE
    return _("%(low)s to %(high)s") % {"low": points(bounds[0]), "high": points(bounds[1])}


@register.filter
def p_value(probability: float | str | None) -> str:
    """Write a p-value with three decimals, or as less than the smallest of those."""
    if not isinstance(probability, (int, float)):
        return NONE
    return _figure("< .001") if probability < SMALLEST_P else share(probability)


@register.filter
def short_model(name: str) -> str:
    """Write a model's name without whose it is: `Qwen2.5-0.5B-Instruct` of `Qwen/…`."""
    return name.rstrip("/").rsplit("/", 1)[-1]


@register.filter
def grouped(count: int) -> str:
    """Write a count with thin spaces between thousands: `12 480`."""
    return f"{count:,}".replace(",", "\u202f")


@register.filter
def seconds(milliseconds: int | str | None) -> str:
    """Write a time in seconds: with one decimal up to a minute, whole ones beyond."""
    if not isinstance(milliseconds, int):
        return NONE
    took = milliseconds / 1000
    return _figure(f"{took:.1f}\u202fs" if took < 60 else f"{took:.0f}\u202fs")


@register.filter
def size(count: int) -> str:
    """Write a number of parameters with three significant digits: `494 M`."""
    for unit, letter in _SIZES:
        if count >= unit:
            return _figure(f"{count / unit:.3g}\u202f{letter}")
    return str(count) if count else NONE


@register.filter
def moment(value: datetime | None, how: str = "time") -> SafeString | str:
    """Write a moment in UTC; site.js shows it in the reader's zone, or as an age for `ago`."""
    if value is None:
        return NONE
    utc = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" data-show="{}" title="{}">{}</time>',
        utc.isoformat(),
        how,
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        f"{utc:%d %b %H:%M:%S} UTC",
    )


@register.filter
def heat_cells(marks: Iterable[Mark]) -> SafeString:
    """Write marks as cells of a row: a page has hundreds, too many for a template's loop."""
    return format_html_join(
        "",
        '<td class="{}" title="{}"><span aria-hidden="true">{}</span>'
        '<span class="hidden">{}</span></td>',
        (_describe_mark(mark) for mark in marks),
    )


def _describe_mark(mark: Mark) -> tuple[str, str, str, str]:
    """Return outcome, title, sign and words of a mark's cell."""
    said = mark.words
    title = said if mark.latency_ms is None else f"{said}, {seconds(mark.latency_ms)}"
    return str(mark.outcome), title, mark.sign, said


@register.filter
def value_cells(row: Iterable[Value]) -> SafeString:
    """Write a row of a chart's table as cells: a page has hundreds of these, too."""
    return format_html_join("", '<td class="num">{}</td>', ((value(cell),) for cell in row))


@register.filter
def words(dataset: str) -> str:
    """Write a dataset's name as plain words: `chain_sum` as `chain sum`."""
    return dataset.replace("_", " ")


@register.filter
def as_json(value: object) -> str:
    """Write a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


@register.inclusion_tag("partials/interval_bar.html")
def interval_bar(score: float, bounds: tuple[float, float]) -> dict[str, str]:
    """Draw a score and its interval on a line from 0 to 1, 100 units wide."""
    low, high = bounds
    return {
        "low": f"{100 * low:.1f}",
        "width": f"{max(1.0, 100 * (high - low)):.1f}",
        "at": f"{100 * score:.1f}",
    }


@register.inclusion_tag("partials/sparkline.html")
def sparkline(scores: Sequence[float]) -> dict[str, Sparkline | None]:
    """Draw scores of rounds, oldest first, on a scale from 0 to 1."""
    return {"line": draw_sparkline(scores)}


@register.inclusion_tag("partials/difference_bar.html")
def difference_bar(
    difference: float, bounds: tuple[float, float] | None, reach: float
) -> dict[str, str]:
    """Draw a difference and its interval on a line from -reach to +reach, 100 units wide."""
    low, high = bounds or (difference, difference)
    unit = 50 / reach
    return {
        "low": f"{50 + unit * low:.1f}",
        "width": f"{max(1.0, unit * (high - low)):.1f}",
        "at": f"{50 + unit * difference:.1f}",
    }
