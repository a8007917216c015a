"""The first page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.dashboard.reports.board import read_board, read_lines

HOME_ROWS = 5


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Say what this is, who leads and how to join."""
    board = read_board("season", now=timezone.now(), limit=HOME_ROWS)
    context = {"board": board, "lines": read_lines(board)}
    return render(request, "home.html", context)
