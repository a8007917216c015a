"""Template filters that format numbers: shares, intervals, rank ranges, sizes and times.

A missing value is written as an en dash. None counts as missing and, in most filters, so does the
empty string, which Django passes if a template variable does not exist. `ranks` and `moment` accept
only None. `grouped`, `size` and the filters of names accept no missing value.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language_bidi
from django.utils.translation import gettext as _

from swarm_web.dashboard.charts.parts import Value
from swarm_web.dashboard.reports.answers import describe_verdict

register = template.Library()
register.filter("verdict", describe_verdict)

NONE = "–"
MINUS = "\u2212"
SMALLEST_P = 0.001
# Unicode's marks around a left-to-right part of a text.
_ISOLATE, _END_OF_ISOLATE = "\u2066", "\u2069"
_SIZES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def figure_writer() -> Callable[[str], str]:
    """Return a function that prepares a formatted number for text in the active language.

    If the language is written from right to left, the returned function adds invisible characters
    that keep the number's parts in order. Otherwise it returns the number unchanged. Looking up the
    direction takes time: call `figure_writer` once for all numbers of a page.
    """
    return _isolate if get_language_bidi() else str


def _isolate(text: str) -> str:
    return f"{_ISOLATE}{text}{_END_OF_ISOLATE}"


def _figure(text: str) -> str:
    return figure_writer()(text)


@register.filter
def share(value: float | str | None) -> str:
    """Write a fraction with three decimals, such as `.347`; a dash if `value` is not a number."""
    if not isinstance(value, (int, float)):
        return NONE
    return _figure(write_share(value))


def write_share(fraction: float) -> str:
    """Write a fraction as `share` does, but without marks for the direction of the text."""
    return f"{fraction:.3f}".removeprefix("0")


@register.filter
def percent(value: float | str | None) -> str:
    """Write a fraction as a whole number of percent, `35 %`; a dash if `value` is not a number."""
    if not isinstance(value, (int, float)):
        return NONE
    return _figure(f"{value:.0%}".replace("%", "\u202f%"))


@register.filter
def interval(bounds: tuple[float | None, float | None] | None) -> str:
    """Write an interval of fractions: both ends with three decimals, and an en dash between them.

    If the interval or one of its ends is missing, the result is a single dash.
    """
    low, high = bounds or (None, None)
    return NONE if low is None or high is None else _figure(write_interval(low, high))


def write_interval(low: float, high: float) -> str:
    """Write an interval as `interval` does, but without marks for the direction of the text."""
    return f"{write_share(low)}–{write_share(high)}"


def write_value(cell: Value) -> str:
    """Write a cell of a chart's table: None as a dash, a pair as an interval.

    A float is written as a fraction with three decimals, such as `.347`. Any other value is
    converted with `str`.
    """
    if cell is None:
        return NONE
    if isinstance(cell, tuple):
        return write_interval(*cell)
    return write_share(cell) if isinstance(cell, float) else str(cell)


@register.filter
def ranks(bounds: tuple[int, int] | None) -> str:
    """Write a rank range: two numbers with an en dash, or one if best and worst are the same.

    None is a dash.
    """
    if bounds is None:
        return NONE
    best, worst = bounds
    return str(best) if best == worst else _figure(f"{best}–{worst}")


@register.filter
def points(difference: float | str | None) -> str:
    """Write a difference of two shares in percentage points, `+12.3`; a dash if not a number."""
    if not isinstance(difference, (int, float)):
        return NONE
    rounded = round(100 * difference, 1)
    sign = "+" if rounded > 0 else MINUS if rounded < 0 else ""
    return _figure(f"{sign}{abs(rounded):.1f}")


@register.filter
def points_interval(bounds: tuple[float, float] | None) -> str:
    """Write an interval of a difference in percentage points, `+1.0 to +4.2`; a dash if None."""
    if not bounds:
        return NONE
    return _("%(low)s to %(high)s") % {"low": points(bounds[0]), "high": points(bounds[1])}


@register.filter
def p_value(probability: float | str | None) -> str:
    """Write a p-value with three decimals, `.031`, or as `< .001`; a dash if not a number."""
    if not isinstance(probability, (int, float)):
        return NONE
    return _figure("< .001") if probability < SMALLEST_P else share(probability)


@register.filter
def short_model(name: str) -> str:
    """Write a model's name without its owner: `Qwen2.5-0.5B` for `Qwen/Qwen2.5-0.5B`."""
    return name.rstrip("/").rsplit("/", 1)[-1]


@register.filter
def grouped(count: float) -> str:
    """Write a count, rounded to a whole number, with thin spaces between thousands: `12 480`."""
    return f"{count:,.0f}".replace(",", "\u202f")


@register.filter
def seconds(milliseconds: int | str | None) -> str:
    """Write milliseconds as seconds, `1.4 s`: with one decimal below a minute, else with none.

    A missing value is a dash.
    """
    return _figure(write_seconds(milliseconds)) if isinstance(milliseconds, int) else NONE


def write_seconds(milliseconds: int) -> str:
    """Write milliseconds as `seconds` does, but without marks for the direction of the text."""
    duration = milliseconds / 1000
    return f"{duration:.1f}\u202fs" if duration < 60 else f"{duration:.0f}\u202fs"


@register.filter
def size(count: int) -> str:
    """Write a large count with up to three significant digits, `494 M`; 0 is a dash."""
    for unit, letter in _SIZES:
        figure = f"{count / unit:.3g}"
        if float(figure) >= 1:  # not `count >= unit`: 999,600 is written `1 M`, not `1e+03 k`
            return _figure(f"{figure}\u202f{letter}")
    return str(count) if count else NONE


@register.filter
def moment(value: datetime | None, how: str = "time") -> SafeString | str:
    """Write a time as an HTML element with the time in UTC; None as a dash.

    In the browser, site.js replaces the text. `how` selects the new text: "time" is the date and
    time in the reader's zone, "clock" only the time of day, "ago" the time since `value`, and
    "countdown" the time until `value`.
    """
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
def words(dataset: str) -> str:
    """Write a dataset's name as words: `chain_sum` as `chain sum`."""
    return dataset.replace("_", " ")


@register.filter
def as_json(value: object) -> str:
    """Write a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


@register.filter("code_name")
def name_code(code: str) -> str:
    """Write a code in words: why a node dropped rollouts, or what a ruling changed.

    Nodes may report codes of their own. In an unknown code, underscores are replaced by spaces.
    """
    known = {
        "own": _("the node's own"),
        "duplicate": _("already received"),
        "foreign": _("from another season"),
        "not_decodable": _("cannot be encoded by its tokenizer"),
        "too_long": _("too long to train on"),
        "unscorable": _("could not be checked"),
        "not_informative": _("not informative"),
        "not_drawn": _("not selected"),
        "answers_changed": _("answers changed"),
        "scores_changed": _("scores changed"),
    }
    return known.get(code, code.replace("_", " "))
