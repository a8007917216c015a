"""All rounds, and one of them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from judge.models import Round
from judge.selectors import rounds_with_turnout, shown_season
from swarm_web.dashboard.reports.round import SHOWN_NODES, read_round

LISTED_ROUNDS = 100


@require_safe
def rounds(request: HttpRequest) -> HttpResponse:
    """List the latest rounds."""
    season = shown_season()
    listed = rounds_with_turnout()[:LISTED_ROUNDS]
    return render(request, "rounds.html", {"rounds": listed, "season": season})


@require_safe
def judge_round(request: HttpRequest, number: int) -> HttpResponse:
    """Show a round's phases; its questions, answers and scores once it has closed."""
    found = get_object_or_404(Round.objects.select_related("season"), number=number)
    context = {"report": read_round(found), "round": found, "shown_nodes": SHOWN_NODES}
    return render(request, "round.html", context)
