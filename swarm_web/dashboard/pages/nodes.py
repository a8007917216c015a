"""The page of a node."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.reports.conduct import read_refusal_report
from swarm_web.dashboard.reports.node import SHOWN_ROUNDS, load_node, read_owner, read_report
from swarm_web.dashboard.reports.node_charts import (
    SPANS,
    draw_figure,
    find_base,
    read_charts,
    read_exchanged,
    read_span,
)


@require_safe
@answer_refusals
def node(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show whether a node works, then all of its numbers."""
    found = load_node(name)
    now, span = timezone.now(), read_span(request.GET.get("rounds"))
    report = read_report(found, now=now, rounds=SHOWN_ROUNDS)
    context: dict[str, object] = {
        "report": report,
        "node": found,
        "owner": read_owner(found),
        "span": span,
        "spans": SPANS,
        "refused": read_refusal_report(found),
    }
    if report.season is not None:
        base = find_base(found, report.season, now=now, lift=report.lift)
        context |= read_charts(found, report.season, base=base, span=span)
        context["exchanged"] = read_exchanged(found, report.season, now=now)
    return render(request, "node.html", context)


@require_safe
@answer_refusals
def node_figure(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return a node's figure as JSON; `?chart=` names the figure, by default `score`."""
    found = load_node(name)
    span = read_span(request.GET.get("rounds"))
    chart = request.GET.get("chart", "score")
    return JsonResponse(draw_figure(found, chart, span=span, now=timezone.now()))
