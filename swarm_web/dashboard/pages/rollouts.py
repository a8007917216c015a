"""The pages of rollouts: a searchable list, a single rollout, and who learned from whom."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.reports.rollouts import (
    load_card,
    read_flow,
    read_hour,
    read_rollout_query,
    read_rollouts,
)


@require_safe
@answer_refusals
def rollouts(request: HttpRequest) -> HttpResponseBase:
    """List archived rollouts with verdicts that match the query, newest first, a page at a time."""
    report = read_rollouts(read_rollout_query(request.GET.dict()))
    return render(request, "rollouts.html", {"report": report})


@require_safe
def rollout(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Show one rollout with all of its completions."""
    return render(request, "rollout.html", {"card": load_card(pk)})


@require_safe
@answer_refusals
def flow(request: HttpRequest) -> HttpResponseBase:
    """Show who learned from whom in the hour that `?hour=` names, by default the current one."""
    now = timezone.now()
    hour = read_hour(request.GET.get("hour", ""), now=now)
    return render(request, "flow.html", {"report": read_flow(hour=hour, now=now)})
