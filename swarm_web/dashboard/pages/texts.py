"""Pages that tell rather than count: the downloads, and how to join."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from swarm_web.dashboard.downloads.rewards import COLUMNS, FILTERS


@require_safe
def downloads(request: HttpRequest) -> HttpResponse:
    """Offer the data, and say what each column means."""
    return render(request, "downloads.html", {"columns": COLUMNS, "filters": FILTERS})


@require_safe
def join(request: HttpRequest) -> HttpResponse:
    """Say how to join, what it takes and what is shared."""
    return render(request, "join.html")
