"""Refuses requests with text that the database cannot store, before a view reads them.

Query strings may contain a NUL. A multipart form may declare an encoding, and some encodings decode
to lone surrogates; browsers send UTF-8, which has none.
"""

import codecs
from collections.abc import Callable, Mapping
from http import HTTPStatus

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_only_middleware

from swarm_web.core.errors import RequestError

Answer = Callable[[HttpRequest], HttpResponseBase]


def check_query(params: Mapping[str, str]) -> None:
    """Raise RequestError if a value of a query string contains a NUL."""
    for name, value in params.items():
        if "\0" in value:
            raise RequestError(
                "query.invalid",
                f"{name[:40]!r} holds a character that no text has (U+0000).",
                fix="Leave the character out.",
            )


def check_encoding(encoding: str | None) -> None:
    """Raise RequestError if a request declares an encoding other than UTF-8.

    `encoding` is a name that Python knows; None or empty if nothing was declared.
    """
    if encoding and codecs.lookup(encoding).name != "utf-8":
        raise RequestError(
            "request.encoding",
            "The form is not in UTF-8.",
            fix="Encode it in UTF-8.",
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )


@sync_only_middleware
def refuse_unfit(get_response: Answer) -> Answer:
    """Middleware that refuses a NUL in a query parameter's value, and encodings other than UTF-8.

    It answers such requests with a JSON error. The database cannot store a NUL. It cannot store
    lone surrogates either, and some encodings decode to them. If a parameter is repeated, only its
    last value is checked, because views read only this value.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        return _find_refusal(request) or get_response(request)

    return middleware


def _find_refusal(request: HttpRequest) -> HttpResponseBase | None:
    try:
        check_encoding(request.encoding)
        check_query({name: request.GET.get(name, "") for name in request.GET})
    except RequestError as refusal:
        return JsonResponse(refusal.body(), status=refusal.status)
    return None
