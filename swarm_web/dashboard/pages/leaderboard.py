"""The leaderboard."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from judge.selectors import WINDOWS
from swarm_web.dashboard.reports.board import read_board, read_chart, read_window
from swarm_web.dashboard.reports.lineup import line_up
from swarm_web.errors import answer_refusals


@require_safe
@answer_refusals
def leaderboard(request: HttpRequest) -> HttpResponseBase:
    """Rank the nodes over a window, and draw how the leaders got there."""
    window = read_window(request.GET.get("window"))
    board = read_board(window, now=timezone.now())
    context = {
        "board": board,
        "lines": line_up(board),
        "windows": WINDOWS,
        "chart": read_chart(board),
        "figure_url": f"{reverse('leaderboard-figure')}?window={window}",
    }
    return render(request, "leaderboard.html", context)


@require_safe
@answer_refusals
def leaderboard_figure(request: HttpRequest) -> HttpResponseBase:
    """Answer with the leaderboard's figure, for the chart to redraw itself."""
    board = read_board(read_window(request.GET.get("window")), now=timezone.now())
    return JsonResponse(read_chart(board).figure)
