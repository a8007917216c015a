"""Template filters and tags that write small parts of pages as HTML: cells, bars, links.

A page may have hundreds of these. They are written in Python, because rendering a template for each
cell of a leaderboard with fifty rows would take longer than all other work on the page. Values from
outside are escaped, and texts translated, as in templates.
"""

from collections.abc import Callable, Iterable, Sequence

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from judge.models import Score
from swarm_web.dashboard.charts.parts import ARM_NAMES, Value
from swarm_web.dashboard.reports.answers import AnswerMark, AnswerOutcome, SheetRow
from swarm_web.dashboard.reports.board import BoardLine, Lift
from swarm_web.dashboard.reports.round import advise
from swarm_web.dashboard.templatetags.figures import (
    NONE,
    figure_writer,
    interval,
    percent,
    points,
    points_interval,
    seconds,
    share,
    write_seconds,
    write_value,
)
from swarm_web.nodes.models import node_path

register = template.Library()

# A bar is 100 units wide and as high as a row of text.
_BAR = (
    '<svg class="interval{kind}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="track" x="0" y="3.5" width="100" height="1"/>{zero}'
    '<rect class="reach" x="{low:.1f}" y="1.5" width="{width:.1f}" height="5" rx="1"/>'
    '<rect class="at" x="{at:.1f}" y="0" width="1.6" height="8"/></svg>'
)
_ZERO = '<rect class="zero" x="49.6" y="0" width="0.8" height="8"/>'
_SPARK = (
    '<svg class="spark" viewBox="0 0 60 16" aria-hidden="true"><polyline points="{points}"/>'
    '<circle cx="{x}" cy="{y}" r="1.8"/></svg>'
)


register.filter("node_url", node_path)


@register.filter
def arm_label(arm: str) -> SafeString:
    """Return an arm's name as an HTML element, with the CSS class of the arm's colour."""
    return format_html(
        '<span class="arm {}">{}</span>', arm, ARM_NAMES.get(arm, ARM_NAMES["isolated"])
    )


@register.simple_tag
def interval_bar(score: float, bounds: tuple[float, float], end: float = 1.0) -> SafeString:
    """Draw a score and its interval on a line from 0 to `end`."""
    low, high = bounds
    unit = 100 / end
    places = {"low": unit * low, "width": max(1.0, unit * (high - low)), "at": unit * score}
    return mark_safe(_BAR.format(kind="", zero="", **places))


@register.simple_tag
def difference_bar(
    difference: float, bounds: tuple[float, float] | None, reach: float
) -> SafeString:
    """Draw a difference on a line from -reach to +reach.

    Its interval is drawn too, unless `bounds` is None.
    """
    low, high = bounds or (difference, difference)
    unit = 50 / reach
    width = max(1.0, unit * (high - low))
    places = {"low": 50 + unit * low, "width": width, "at": 50 + unit * difference}
    return mark_safe(_BAR.format(kind=" difference", zero=_ZERO, **places))


@register.simple_tag
def sparkline(scores: Sequence[float], end: float = 1.0) -> SafeString:
    """Draw a small line chart of scores, oldest first, on a scale from 0 to `end`.

    The result is empty if there are no scores.
    """
    if not scores:
        return SafeString()
    # From 2 to 58 and from 14 up to 2: the dot at the end must not be cut off.
    step = 56 / max(1, len(scores) - 1)
    spots = [(f"{2 + i * step:.1f}", f"{14 - 12 * s / end:.1f}") for i, s in enumerate(scores)]
    (x, y), points = spots[-1], " ".join(map(",".join, spots))
    return mark_safe(_SPARK.format(points=points, x=x, y=y))


@register.filter
def score_cells(score: Score) -> SafeString:
    """Write three table cells: a score in a round, its interval, and `solved of n` questions.

    If the node has no score, each cell has a dash.
    """
    if score.score is None:
        return mark_safe(f'<td class="num">{NONE}</td>' * 3)
    solved = f"{score.correct} {escape(_('of'))} {score.n}"
    cells = (
        f'<data value="{score.score!r}">{share(score.score)}</data>',
        interval(score.interval),
        solved,
    )
    return mark_safe("".join(f'<td class="num">{cell}</td>' for cell in cells))


@register.filter
def lift_cell(lift: Lift | None) -> SafeString:
    """Write a table cell: a node's score minus that of its untrained model, in percentage points.

    The cell's tooltip names the interval and the untrained node. For None the cell has a dash.
    """
    label = _("over base")
    if lift is None:
        return format_html('<td class="num lift none" data-label="{}">{}</td>', label, NONE)
    compared = _(
        "95 %% interval %(interval)s points, compared with %(base)s (%(score)s, n = %(n)s)"
    ) % {
        "interval": points_interval(lift.interval),
        "base": lift.base.node,
        "score": share(lift.base.score),
        "n": lift.base.n,
    }
    cell = '<td class="num lift" data-label="{}"><abbr title="{}">{}</abbr></td>'
    return format_html(cell, label, compared, points(lift.difference))


@register.filter
def part_cell(line: BoardLine) -> SafeString:
    """Write a table cell: the share of the leaderboard window's rounds in which a node was scored.

    The cell's tooltip names how many rounds the node was scored in and, if it missed any, how many
    it missed. If the window has no round, the cell has a dash.
    """
    label, rounds = _("of the rounds"), line.row.rounds
    if line.took_part is None:
        return format_html('<td class="num part" data-label="{}">{}</td>', label, NONE)
    counted = ngettext("%(rounds)s round", "%(rounds)s rounds", rounds) % {"rounds": rounds}
    if line.row.missed:
        counted += _(", missed %(missed)s it was invited to") % {"missed": line.row.missed}
    cell = '<td class="num part" data-label="{}"><abbr title="{}">{}</abbr></td>'
    return format_html(cell, label, counted, percent(line.took_part))


@register.filter
def value_rows(rows: Iterable[Sequence[Value]]) -> SafeString:
    """Write the rows of a chart's table (`TabledChart.rows`)."""
    write = figure_writer()
    return mark_safe("".join(f"<tr>{_value_cells(row, write)}</tr>" for row in rows))


def _value_cells(row: Iterable[Value], write: Callable[[str], str]) -> str:
    return "".join(f'<td class="num">{escape(write(write_value(cell)))}</td>' for cell in row)


@register.filter
def reason_words(score: Score) -> SafeString:
    """Write why a score is incomplete or missing, and what the node's owner can do about it.

    The result is empty for a complete score.
    """
    if not score.reason:
        return SafeString()
    words = '<span class="reason">{}.</span> <small>{}</small>'
    return format_html(words, capfirst(score.get_reason_display()), advise(score.reason))


@register.filter
def result_rows(rows: Iterable[SheetRow]) -> SafeString:
    """Write a table row for each node of a round with its result, in the given order."""
    return mark_safe("".join(map(_result_row, rows)))


def _result_row(row: SheetRow) -> str:
    score = row.score
    untrained = ' class="untrained"' if score.arm == "base" else ""
    quarantined = escape(_("Quarantined: not ranked.")) + " " if score.node.quarantined else ""
    return (
        f"<tr{untrained}>{_heading(row, kind='who')}{score_cells(score)}"
        f'<td class="num">{seconds(row.took)}</td><td>{arm_label(score.arm)}</td>'
        f"<td>{escape(score.model) or NONE}</td><td>{quarantined}{reason_words(score)}</td></tr>\n"
    )


@register.filter
def heat_rows(rows: Iterable[SheetRow]) -> SafeString:
    """Write a table row for each node of a round, with a cell for its answer to each question."""
    write = figure_writer()
    # There are few different marks, so the words of each are made once.
    words: dict[tuple[AnswerOutcome, str], str] = {}

    def cell(mark: AnswerMark) -> str:
        kind = (mark.outcome, mark.verdict)
        text = words.get(kind) or words.setdefault(kind, escape(mark.words))
        latency = mark.latency_ms
        title = text if latency is None else f"{text}, {write(write_seconds(latency))}"
        return (
            f'<td class="{kind[0]}" title="{title}"><span aria-hidden="true">{mark.sign}</span>'
            f'<span class="hidden">{text}</span></td>'
        )

    return mark_safe(
        "".join(f"<tr>{_heading(row)}{''.join(map(cell, row.marks))}</tr>" for row in rows)
    )


def _heading(row: SheetRow, *, kind: str = "") -> str:
    name = row.score.node.name
    link = f'<a href="{escape(node_path(name))}">{escape(name)}</a>'
    return f'<th scope="row" class="{kind}">{link}</th>' if kind else f'<th scope="row">{link}</th>'
