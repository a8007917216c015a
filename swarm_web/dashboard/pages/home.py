"""The first page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.dashboard.pages.announcements import find_announcement
from swarm_web.dashboard.reports.board import read_lines
from swarm_web.dashboard.reports.compare import read_comparison
from swarm_web.dashboard.reports.home import read_home
from swarm_web.dashboard.reports.lab import read_answer, sketch_answer


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Say what the swarm does now, who leads, whether sharing helps, and how to join."""
    report, answer = read_home(now=timezone.now()), read_answer()
    context = {
        "announcement": find_announcement(request),
        "home": report,
        "board": report.board,
        "lines": read_lines(report.board),
        "answer": answer,
        "sketch": sketch_answer(answer),
        "comparison": read_comparison(),
    }
    return render(request, "home.html", context)
