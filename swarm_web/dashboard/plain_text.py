"""Queries that hold a NUL, which no text of the database can: refused before anybody reads them."""

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_only_middleware

from swarm_web.errors import RequestError

Answer = Callable[[HttpRequest], HttpResponseBase]


def check_query(params: Mapping[str, str]) -> None:
    """Raise RequestError if a query string's value holds a NUL."""
    for name, value in params.items():
        if "\0" in value:
            raise RequestError(
                "query.invalid",
                f"{name[:40]!r} holds a character that no text has (U+0000).",
                fix="Leave the character out.",
            )


@sync_only_middleware
def refuse_nul(get_response: Answer) -> Answer:
    """Refuse addresses whose query holds a NUL: each would fail in the database."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        return _find_refusal(request) or get_response(request)

    return middleware


def _find_refusal(request: HttpRequest) -> HttpResponseBase | None:
    try:
        check_query({name: request.GET.get(name, "") for name in request.GET})
    except RequestError as refusal:
        return JsonResponse(refusal.body(), status=refusal.status)
    return None
