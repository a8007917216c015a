"""Views of the downloads: rewards, a round's questions and answers, the rollouts archive."""

from collections.abc import Iterator, Sequence

from django.db.models import Max
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import condition, require_safe

from judge.models import Round, Ruling
from swarm_protocol.version import CLIENT_VERSION
from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.downloads import answers, rollouts
from swarm_web.dashboard.downloads.batches import stream
from swarm_web.dashboard.downloads.formats import FORMATS, Column, Row
from swarm_web.dashboard.downloads.rewards import COLUMNS, Rewards, select_rewards


def _version(_request: HttpRequest, **_path: object) -> str:
    """Return an ETag that changes with each closed round, `Ruling` and version of the software.

    Another version may write other columns.
    """
    closed = Round.objects.aggregate(at=Max("closed_at"))["at"]
    ruling = Ruling.objects.aggregate(last=Max("pk"))["last"]
    return f'"{CLIENT_VERSION}-{closed.timestamp() if closed else 0:.6f}-{ruling or 0}"'


@require_safe
@answer_refusals
@condition(etag_func=_version)
def download_rewards(request: HttpRequest, suffix: str) -> HttpResponseBase:
    """Stream the scores of closed rounds: all scores, or those that the query string selects."""
    chosen = select_rewards(request.GET.dict())
    return _send(COLUMNS, chosen.read(), f"rewards.{suffix}")


@require_safe
@answer_refusals
@condition(etag_func=_version)
def download_round_rewards(request: HttpRequest, number: int, suffix: str) -> HttpResponseBase:
    """Stream the scores of one round: all scores, or those that the query string selects.

    The file has no rows before the round has closed, and none if the round is void.
    """
    judge_round = get_object_or_404(Round, number=number)
    chosen = select_rewards(request.GET.dict())
    one = Rewards(chosen.rounds.filter(pk=judge_round.pk), chosen.scores)
    return _send(COLUMNS, one.read(), f"round-{number}-rewards.{suffix}")


@require_safe
@answer_refusals
@condition(etag_func=_version)
def download_round_answers(_request: HttpRequest, number: int) -> HttpResponseBase:
    """Stream every answer of one round; refuse the request until the round has closed."""
    rows = answers.read_answers(number)
    return _send(answers.ANSWER_COLUMNS, rows, f"round-{number}-answers.jsonl")


@require_safe
@answer_refusals
@condition(etag_func=_version)
def download_round_asked(_request: HttpRequest, number: int) -> HttpResponseBase:
    """Stream digests of the questions that the season asked before round `number`.

    The file has a row for each earlier round (`answers.read_asked`). The request is refused until
    round `number` has closed.
    """
    rows = answers.read_asked(number)
    return _send(answers.ASKED_COLUMNS, rows, f"round-{number}-asked.jsonl")


@require_safe
def download_rollouts(_request: HttpRequest) -> HttpResponseBase:
    """Stream the archived rollouts that have verdicts."""
    return _send(rollouts.COLUMNS, rollouts.read_rollouts(), "rollouts.jsonl")


def _send(
    columns: Sequence[Column], pieces: Iterator[Sequence[Row]], filename: str
) -> HttpResponseBase:
    """Stream the rows as a file, in the format that `filename` ends with."""
    chosen = FORMATS[filename.rpartition(".")[2]]
    return StreamingHttpResponse(
        stream(chosen.write(columns, pieces)),
        content_type=chosen.content_type,
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )
