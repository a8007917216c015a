"""All rounds, and one of them."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from judge.models import Round
from swarm_web.dashboard.reports.round import SHOWN_NODES, read_round
from swarm_web.dashboard.reports.rounds import (
    RoundsReport,
    read_cursor,
    read_rounds,
    read_season,
)
from swarm_web.errors import answer_refusals


@require_safe
@answer_refusals
def rounds(request: HttpRequest) -> HttpResponseBase:
    """List rounds, newest first, a page at a time."""
    context = {"report": _read_rounds(request), "query": request.GET.urlencode()}
    return render(request, "rounds.html", context)


@require_safe
@answer_refusals
def rounds_figure(request: HttpRequest) -> HttpResponseBase:
    """Answer with the figure of the rounds' scores, for the chart to redraw itself."""
    return JsonResponse(_read_rounds(request).drawing.figure)


def _read_rounds(request: HttpRequest) -> RoundsReport:
    return read_rounds(
        season=read_season(request.GET.get("season")),
        before=read_cursor(request.GET.get("before")),
    )


@require_safe
def judge_round(request: HttpRequest, number: int) -> HttpResponse:
    """Show a round's phases; its questions, answers and scores once it has closed."""
    found = get_object_or_404(Round.objects.select_related("season"), number=number)
    context = {"report": read_round(found), "round": found, "shown_nodes": SHOWN_NODES}
    return render(request, "round.html", context)
