"""The pages that a visitor reads; thin: each reads one report and renders it."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from judge.comparison import MIN_NODES_PER_ARM, MIN_ROUNDS
from judge.models import Round
from judge.selectors import WINDOWS, rounds_with_turnout, shown_season
from swarm_web.dashboard.board import read_board, read_chart, read_window
from swarm_web.dashboard.compare_report import read_comparison
from swarm_web.dashboard.exports import COLUMNS, FILTERS
from swarm_web.dashboard.lineup import line_up
from swarm_web.dashboard.node_report import read_report
from swarm_web.dashboard.round_report import SHOWN_NODES, read_round
from swarm_web.dashboard.seasons_report import read_seasons
from swarm_web.errors import RequestError, answer_refusals
from swarm_web.nodes.models import Node

HOME_ROWS = 5
LISTED_ROUNDS = 100


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Say what this is, who leads and how to join."""
    board = read_board("season", now=timezone.now())
    context = {"board": board, "lines": line_up(board)[:HOME_ROWS], "limit": HOME_ROWS}
    return render(request, "home.html", context)


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


@require_safe
def node(request: HttpRequest, name: str) -> HttpResponse:
    """Say whether a node works, then show every number about it."""
    found = get_object_or_404(Node, name=name)
    report = read_report(found, now=timezone.now())
    return render(request, "node.html", {"report": report, "node": found})


@require_safe
def node_figure(_request: HttpRequest, name: str) -> JsonResponse:
    """Answer with a node's figure, for the chart to redraw itself."""
    found = get_object_or_404(Node, name=name)
    return JsonResponse(read_report(found, now=timezone.now()).figure())


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


@require_safe
def downloads(request: HttpRequest) -> HttpResponse:
    """Offer the data, and say what each column means."""
    return render(request, "downloads.html", {"columns": COLUMNS, "filters": FILTERS})


@require_safe
def join(request: HttpRequest) -> HttpResponse:
    """Say how to join, what it takes and what is shared."""
    return render(request, "join.html")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer 404: JSON under /api/, else a page."""
    if request.path.startswith("/api/"):
        refusal = RequestError(
            "not_found", f"There is no {request.path[:200]}.", fix="See /api/docs.", status=404
        )
        return JsonResponse(refusal.body(), status=404)
    return render(request, "404.html", status=404)
