"""A node's own page."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from judge.models import Season
from judge.selectors import shown_season
from swarm_web.accounts.selectors import public_owner_of
from swarm_web.dashboard.reports.drawings import Drawing
from swarm_web.dashboard.reports.history import SPANS, draw_history, find_base, read_span
from swarm_web.dashboard.reports.node import SHOWN_ROUNDS, read_report
from swarm_web.dashboard.reports.refusals import describe_refusals
from swarm_web.dashboard.reports.training import (
    read_exchanged,
    read_steps,
    tell_reflection,
    tell_training,
)
from swarm_web.errors import RequestError, answer_refusals
from swarm_web.leaderboard import LeaderboardRow
from swarm_web.nodes.models import Node
from swarm_web.refusals import read_refusals


@require_safe
@answer_refusals
def node(request: HttpRequest, name: str) -> HttpResponseBase:
    """Say whether a node works, then show every number about it."""
    found = get_object_or_404(Node, name=name)
    now, span = timezone.now(), read_span(request.GET.get("rounds"))
    report = read_report(found, now=now, rounds=SHOWN_ROUNDS)
    noted = read_refusals(found.pk)
    context = {
        "report": report,
        "node": found,
        "owner": public_owner_of(found),
        "span": span,
        "spans": SPANS,
        "refusals": describe_refusals(noted),
        "refusals_known": noted is not None,
    }
    if report.season is not None:
        base = find_base(found, report.season, now=now, lift=report.lift)
        context |= _draw(found, report.season, base=base, span=span)
        context["exchanged"] = read_exchanged(found, report.season, now=now)
    return render(request, "node.html", context)


@require_safe
@answer_refusals
def node_figure(request: HttpRequest, name: str) -> HttpResponseBase:
    """Answer with one of a node's figures, for the chart to redraw itself."""
    found = get_object_or_404(Node, name=name)
    season, span = shown_season(), read_span(request.GET.get("rounds"))
    if season is None:
        return JsonResponse({})
    chart = request.GET.get("chart", "score")
    now = timezone.now()
    if chart == "score":
        base = find_base(found, season, now=now)
        return JsonResponse(draw_history(found, season, base=base, span=span).figure)
    if chart == "training":
        return JsonResponse(tell_training(read_steps(found, season)).figure)
    if chart == "reflection":
        return JsonResponse(tell_reflection(read_steps(found, season)).figure)
    raise RequestError(
        "query.chart",
        f"There is no chart {chart[:40]!r}.",
        fix="Use one of score, training, reflection.",
    )


def _draw(
    found: Node, season: Season, *, base: LeaderboardRow | None, span: int
) -> dict[str, Drawing]:
    steps = read_steps(found, season)
    return {
        "history": draw_history(found, season, base=base, span=span),
        "training": tell_training(steps),
        "reflection": tell_reflection(steps),
    }
