"""Swarm against isolated nodes."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from judge.comparison import MIN_NODES_PER_ARM, MIN_ROUNDS
from swarm_web.dashboard.reports.compare import read_comparison
from swarm_web.dashboard.reports.seasons import read_seasons


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Say what is known of swarm against isolated nodes, and how surely."""
    context = {
        "report": read_comparison(),
        "seasons": read_seasons(),
        "least_nodes": MIN_NODES_PER_ARM,
        "least_rounds": MIN_ROUNDS,
    }
    return render(request, "compare.html", context)
