"""The read API under /api/v1/: the same rows as the pages, as JSON.

Scores are fractions in [0, 1], times ISO 8601 in UTC. Errors are `{code, message, fix}`.
"""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import NinjaAPI, Router
from ninja.errors import ValidationError

from judge.models import Round
from swarm_web.dashboard.api.bodies import (
    describe_board,
    describe_comparison,
    describe_node,
    describe_round,
    describe_round_report,
)
from swarm_web.dashboard.api.schemas import (
    CompareOut,
    LeaderboardOut,
    NodeOut,
    Problem,
    RoundDetail,
    RoundsOut,
)
from swarm_web.dashboard.reports.board import read_board, read_window
from swarm_web.dashboard.reports.compare import read_comparison
from swarm_web.dashboard.reports.node import read_report
from swarm_web.dashboard.reports.round import read_round
from swarm_web.dashboard.reports.seasons import read_seasons
from swarm_web.errors import RequestError
from swarm_web.nodes.models import Node

MAX_PAGE = 500

api = NinjaAPI(
    title=f"{settings.SITE_NAME} read API",
    version="1",
    description="What the pages show, as JSON. Public, read-only, without authentication.",
    openapi_url="/openapi.json",
    docs_url="/docs",
)
router = Router(tags=["read"])


# ---- errors


def _refuse(request: HttpRequest, refusal: RequestError) -> HttpResponse:
    return api.create_response(request, refusal.body(), status=refusal.status)


@api.exception_handler(RequestError)
def answer_refusal(request: HttpRequest, refusal: RequestError) -> HttpResponse:
    """Answer a refused request."""
    return _refuse(request, refusal)


@api.exception_handler(ValidationError)
def answer_invalid(request: HttpRequest, problem: ValidationError) -> HttpResponse:
    """Answer a request whose parameters have the wrong type."""
    wrong = "; ".join(f"{error['loc'][-1]}: {error['msg']}" for error in problem.errors)
    return _refuse(
        request,
        RequestError("query.invalid", wrong, fix="See /api/docs for the parameters."),
    )


@api.exception_handler(Http404)
def answer_missing(request: HttpRequest, missing: Http404) -> HttpResponse:
    """Answer a request for something that does not exist."""
    return _refuse(
        request,
        RequestError(
            "not_found",
            "There is nothing of that name or number.",
            fix="List what there is with /api/v1/leaderboard or /api/v1/rounds.",
            status=404,
        ),
    )


# ---- leaderboard


@router.get("/leaderboard", response={200: LeaderboardOut, 400: Problem})
def get_leaderboard(request: HttpRequest, window: str = "season") -> dict[str, Any]:
    """Rank the nodes by judge score over a window: season, round, recent, 24h or 7d."""
    board = read_board(read_window(window), now=timezone.now())
    return describe_board(board)


# ---- swarm against isolated


@router.get("/compare", response=CompareOut)
def get_comparison(request: HttpRequest) -> dict[str, Any]:
    """Tell what the judge claims about swarm and isolated nodes, model by model."""
    return describe_comparison(read_comparison(), read_seasons())


# ---- rounds


@router.get("/rounds", response={200: RoundsOut, 400: Problem})
def list_rounds(
    request: HttpRequest, before: int | None = None, limit: int = 100
) -> dict[str, Any]:
    """List rounds, newest first."""
    limit = max(1, min(limit, MAX_PAGE))
    rounds = Round.objects.select_related("season").order_by("-number")
    if before is not None:
        rounds = rounds.filter(number__lt=before)
    page = list(rounds[: limit + 1])
    more = len(page) > limit
    items = [describe_round(judge_round) for judge_round in page[:limit]]
    return {"items": items, "next_before": page[limit - 1].number if more else None}


@router.get("/rounds/{number}", response={200: RoundDetail, 404: Problem})
def get_round(request: HttpRequest, number: int) -> dict[str, Any]:
    """Show one round; its secret, rules, questions and scores once it has closed.

    The answers are at /rounds/<number>/answers.jsonl, a line each.
    """
    judge_round = get_object_or_404(Round.objects.select_related("season"), number=number)
    return describe_round_report(read_round(judge_round))


# ---- nodes


@router.get("/nodes/{name}", response={200: NodeOut, 404: Problem})
def get_node(request: HttpRequest, name: str) -> dict[str, Any]:
    """Show one node; the figures are of the season that runs or ran last."""
    node = get_object_or_404(Node, name=name)
    return describe_node(read_report(node, now=timezone.now()))


api.add_router("/v1", router)
