"""Downloads of the public record: the chain, and a round's results.

Lines are sent exactly as the site hashed them.
"""

from collections.abc import Iterator

from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import condition, require_safe

from judge.models import ChainLink, Round
from judge.selectors.record import read_result_lines
from swarm_web.dashboard.downloads.batches import CHUNK, stream
from swarm_web.dashboard.downloads.formats import FORMATS

_LINES = FORMATS["jsonl"].content_type


def _last_link(_request: HttpRequest) -> str:
    return f'"{ChainLink.objects.aggregate(last=Max("sequence"))["last"] or 0}"'


@require_safe
@condition(etag_func=_last_link)
def download_chain(_request: HttpRequest) -> HttpResponseBase:
    """Stream the hash chain, one link per line, each with the SHA-256 of the previous line."""
    return StreamingHttpResponse(
        stream(_read_chain()),
        content_type=_LINES,
        headers={"Content-Disposition": 'attachment; filename="chain.jsonl"'},
    )


def _read_chain() -> Iterator[bytes]:
    after = 0
    while lines := list(
        ChainLink.objects.filter(sequence__gt=after).values_list("sequence", "line")[:CHUNK]
    ):
        after = lines[-1][0]
        yield "".join(f"{line}\n" for _, line in lines).encode()


@require_safe
def download_results(_request: HttpRequest, number: int) -> HttpResponse:
    """Send the results of a closed round: a header line, then a line for each node.

    Nodes without a score have a line too.

    Raises Http404 if no closed round has this number.
    """
    judge_round = get_object_or_404(Round.objects.select_related("season"), number=number)
    if judge_round.phase != Round.Phase.CLOSED:
        raise Http404
    body = b"".join(line + b"\n" for line in read_result_lines(judge_round))
    return HttpResponse(
        body,
        content_type=_LINES,
        headers={"Content-Disposition": f'attachment; filename="round-{number}-results.jsonl"'},
    )
