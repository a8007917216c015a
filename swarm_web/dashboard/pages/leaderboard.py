"""The page of the leaderboard."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from judge.models import Window
from swarm_web.board.leaderboard import Leaderboard
from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.reports.board import (
    BoardQuery,
    common_models,
    read_board,
    read_chart,
    read_lines,
    read_query,
    search_node,
)
from swarm_web.nodes.models import Node


@require_safe
@answer_refusals
def leaderboard(request: HttpRequest) -> HttpResponseBase:
    """Rank the nodes over a window, a page at a time, with a chart of the page's first nodes."""
    query = read_query(request.GET.dict())
    finding = search_node(query)
    if finding is not None and finding.after is not None:
        query = replace(query, after=finding.after)
    board = _read(query)
    context = {
        "board": board,
        "lines": read_lines(board),
        "windows": Window.values,
        "arms": Node.Arm.values,
        "models": common_models(board),
        "finding": finding,
        "live_query": query.encode(),
        "chart": read_chart(board),
        "figure_url": f"{reverse('leaderboard-figure')}?{query.encode()}",
    }
    return render(request, "leaderboard.html", context)


@require_safe
@answer_refusals
def leaderboard_figure(request: HttpRequest) -> HttpResponseBase:
    """Return the figure of a page of the leaderboard as JSON."""
    return JsonResponse(read_chart(_read(read_query(request.GET.dict()))).figure)


def _read(query: BoardQuery) -> Leaderboard:
    now = timezone.now()
    return read_board(query.window, now=now, filters=query.filters, after=query.after)
