"""The read API under /api/v1/: the same rows as the pages, as JSON.

Scores are fractions in [0, 1], times ISO 8601 in UTC. Errors are `{code, message, fix}`.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import NinjaAPI, Router
from ninja.errors import ValidationError

from judge.models import Round, Score
from swarm_web.dashboard.api_schemas import LeaderboardOut, NodeOut, Problem, RoundDetail, RoundsOut
from swarm_web.dashboard.board import read_board, read_window
from swarm_web.dashboard.node_report import NodeReport, read_report
from swarm_web.dashboard.round_report import QuestionReport, read_round
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
    """Rank the nodes by judge score over a window: season, round, 24h or 7d."""
    board = read_board(read_window(window), now=timezone.now())
    return {
        "season": board.season,
        "window": board.window,
        "as_of": board.as_of,
        "items": board.rows,
        "waiting": board.waiting,
    }


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
    items = [_describe_round(judge_round) for judge_round in page[:limit]]
    return {"items": items, "next_before": page[limit - 1].number if more else None}


@router.get("/rounds/{number}", response={200: RoundDetail, 404: Problem})
def get_round(request: HttpRequest, number: int) -> dict[str, Any]:
    """Show one round; its questions and scores once it has closed."""
    judge_round = get_object_or_404(Round.objects.select_related("season"), number=number)
    report = read_round(judge_round)
    return {
        **_describe_round(judge_round),
        "question_count": report.question_count,
        "seats": report.seats,
        "completed": report.completed,
        "scores": _describe_scores(report.scores),
        "questions": [_describe_question(question) for question in report.questions],
    }


def _describe_round(judge_round: Round) -> dict[str, Any]:
    return {
        "number": judge_round.number,
        "season": judge_round.season.name,
        "phase": judge_round.phase,
        "opens_at": judge_round.opens_at,
        "closes_at": judge_round.closes_at,
        "closed_at": judge_round.closed_at,
    }


def _describe_scores(scores: Sequence[Score]) -> list[dict[str, Any]]:
    return [
        {
            "round": score.round.number,
            "node": score.node.name,
            "model": score.model,
            "arm": score.arm,
            "status": score.status,
            "reason": score.reason,
            "score": score.score,
            "interval": None if score.score is None else (score.interval_low, score.interval_high),
            "n": score.n,
        }
        for score in scores
    ]


def _describe_question(report: QuestionReport) -> dict[str, Any]:
    question = report.question
    return {
        "position": question.position,
        "dataset": question.dataset,
        "prompt": question.prompt,
        "spec": question.spec,
        "solved": report.solved,
        "seated": report.seated,
    }


# ---- nodes


@router.get("/nodes/{name}", response={200: NodeOut, 404: Problem})
def get_node(request: HttpRequest, name: str) -> dict[str, Any]:
    """Show one node; the figures are of the season that runs or ran last."""
    node = get_object_or_404(Node, name=name)
    report = read_report(node, now=timezone.now())
    return {
        "node": node.name,
        "model": node.model,
        "parameters": node.parameters,
        "arm": node.arm,
        "connected": report.connected,
        "last_seen": node.last_seen,
        "verdict": report.verdict,
        "season": report.season.name if report.season else None,
        "scores": _describe_scores(report.scores),
        **_describe_standing(report),
        **_describe_contribution(report),
    }


def _describe_standing(report: NodeReport) -> dict[str, Any]:
    row = report.row
    return {
        "of": report.ranked,
        "rank": row.rank if row else None,
        "score": row.score if row else None,
        "interval": row.interval if row else None,
        "n": row.n if row else 0,
        "rounds": row.rounds if row else 0,
    }


def _describe_contribution(report: NodeReport) -> dict[str, Any]:
    counted = (
        "step",
        "published",
        "rejected",
        "delivered",
        "local_used",
        "external_used",
    )
    part = report.contribution
    return {
        **{name: getattr(part, name) if part else 0 for name in counted},
        "training_reward": part.training_reward if part else None,
        "informative_share": part.informative_share if part else None,
        "external_dropped": part.external_dropped if part else {},
    }


api.add_router("/v1", router)
