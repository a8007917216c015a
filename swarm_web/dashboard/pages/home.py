"""The home page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.dashboard.reports.board import read_lines
from swarm_web.dashboard.reports.compare import read_comparison
from swarm_web.dashboard.reports.home import current_announcement, read_home
from swarm_web.dashboard.reports.lab import read_answer, sketch_answer


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the current state, the leaders, whether sharing helps, and how to join."""
    now = timezone.now()
    report, answer = read_home(now=now), read_answer()
    context = {
        "announcement": current_announcement(now=now),
        "home": report,
        "board": report.board,
        "lines": read_lines(report.board),
        "answer": answer,
        "sketch": sketch_answer(answer),
        "comparison": read_comparison(),
    }
    return render(request, "home.html", context)
