"""Template filters that format the lab's numbers, and a tag that shows an arm's colour."""

from collections.abc import Callable
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from swarm_web.dashboard.charts.lab import DASHES, Style
from swarm_web.dashboard.reports import lab_drawings as amounts
from swarm_web.dashboard.templatetags.figures import NONE, SMALLEST_P, figure_writer, write_share
from swarm_web.lab.shape import LabComparison, LabEstimate, LabGainAfter

register = template.Library()
_SWATCH = (
    '<svg class="swatch" viewBox="0 0 26 8" aria-hidden="true"><path d="M0 4h26" stroke="{}" '
    'stroke-width="2.5" stroke-dasharray="{}"/></svg>'
)


def _isolating(write: Callable[[Any], str]) -> Callable[[Any], str]:
    # A failed lookup reaches a filter as an empty string.
    return lambda value: NONE if value in (None, "") else figure_writer()(write(value))


for _name in ("gain", "amount", "bytes", "change"):
    register.filter(_name, _isolating(getattr(amounts, f"write_{_name}")))


@register.filter
def change_interval(found: LabComparison) -> str:
    """Write the interval of a gain, or of the difference if there is no gain: `+60 % to +120 %`.

    The result is a dash if there is no interval.
    """
    return _join(amounts.write_change_ends(found))


@register.filter
def gain_interval(after: LabGainAfter) -> str:
    """Write the interval of a gain, `+60 % to +120 %`; the interval must not be missing."""
    return _join((amounts.write_gain(after.gain_low), amounts.write_gain(after.gain_high)))


@register.filter
def estimate_interval(estimate: LabEstimate | None) -> str:
    """Write the interval of a mean, `12.1 to 16`; a dash if there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return NONE
    return _join((amounts.write_amount(estimate.low), amounts.write_amount(estimate.high)))


@register.filter
def p_is(p: float) -> str:
    """Write a p-value with its symbol, for use in a sentence: `p = .031`, `p < .001`."""
    written = "< .001" if p < SMALLEST_P else f"= {write_share(p) if p < 1 else 1}"
    return figure_writer()(f"p {written}")


def _join(ends: tuple[str, str] | None) -> str:
    if ends is None:
        return NONE
    low, high = map(figure_writer(), ends)
    return _("%(low)s to %(high)s") % {"low": low, "high": high}


@register.simple_tag
def swatch(style: Style) -> SafeString:
    """Draw a short line in an arm's colour and dash pattern, as in the legend of a chart."""
    return format_html(_SWATCH, style.colour, DASHES[style.dash])
