"""Rollouts: a searchable list, one of them, and who learned from whom."""

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.dashboard.reports.flow import read_flow, read_hour
from swarm_web.dashboard.reports.rollouts import make_card, read_rollout_query, read_rollouts
from swarm_web.errors import answer_refusals
from swarm_web.relay.selectors import find_rollout


@require_safe
@answer_refusals
def rollouts(request: HttpRequest) -> HttpResponseBase:
    """List archived rollouts, newest first, as the query string asks."""
    report = read_rollouts(read_rollout_query(request.GET.dict()))
    return render(request, "rollouts.html", {"report": report})


@require_safe
def rollout(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Show one rollout with all of its completions."""
    found = find_rollout(pk)
    if found is None:
        raise Http404
    return render(request, "rollout.html", {"card": make_card(found)})


@require_safe
@answer_refusals
def flow(request: HttpRequest) -> HttpResponseBase:
    """Draw who learned from whom in an hour."""
    now = timezone.now()
    hour = read_hour(request.GET.get("hour", ""), now=now)
    return render(request, "flow.html", {"report": read_flow(hour=hour, now=now)})
