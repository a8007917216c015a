"""Views of the downloads: rewards, and the answers of a round."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from judge.models import Round, Score
from swarm_web.dashboard.downloads.answers import select_answers, stream_answers
from swarm_web.dashboard.downloads.rewards import select_rewards, stream_csv, stream_jsonl
from swarm_web.errors import answer_refusals

Stream = Callable[[QuerySet[Score]], AsyncIterator[Any]]
FORMATS: dict[str, tuple[str, Stream]] = {
    "csv": ("text/csv; charset=utf-8", stream_csv),
    "jsonl": ("application/jsonl", stream_jsonl),
}


@require_safe
@answer_refusals
def download_rewards(request: HttpRequest, suffix: str) -> HttpResponseBase:
    """Stream the scores of all closed rounds, or of those that the query string asks for."""
    return _stream(select_rewards(request.GET.dict()), name="rewards", suffix=suffix)


@require_safe
@answer_refusals
def download_round_rewards(request: HttpRequest, number: int, suffix: str) -> HttpResponseBase:
    """Stream the scores of one round; only the header before it has closed."""
    judge_round = get_object_or_404(Round, number=number)
    scores = select_rewards(request.GET.dict()).filter(round=judge_round)
    return _stream(scores, name=f"round-{number}-rewards", suffix=suffix)


@require_safe
@answer_refusals
def download_round_answers(_request: HttpRequest, number: int) -> HttpResponseBase:
    """Stream every answer of one round; refused before it has closed."""
    return _send(
        stream_answers(select_answers(number)),
        content_type=FORMATS["jsonl"][0],
        filename=f"round-{number}-answers.jsonl",
    )


def _stream(scores: QuerySet[Score], *, name: str, suffix: str) -> HttpResponseBase:
    content_type, stream = FORMATS[suffix]
    return _send(stream(scores), content_type=content_type, filename=f"{name}.{suffix}")


def _send(parts: AsyncIterator[Any], *, content_type: str, filename: str) -> HttpResponseBase:
    return StreamingHttpResponse(
        parts,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )
