"""How the read API is read: GET and HEAD answer, other methods are refused, and 304 spares much."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_cache_control
from ninja import Router, Schema
from ninja.decorators import decorate_view

from swarm_web.dashboard.api.errors import answer_other_methods
from swarm_web.dashboard.api.schemas.fields import Problem

View = TypeVar("View", bound=Callable[..., Any])

_OTHER_METHODS = ["OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE"]
_ETAG = {"description": "Send it back as If-None-Match.", "schema": {"type": "string"}}
_WAIT = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
_DOCUMENTED = {
    200: {"headers": {"ETag": _ETAG}},
    304: {"description": "You have it already: it has the ETag that you sent"},
    400: {"description": "A parameter is wrong"},
    404: {"description": "There is no such thing, or no such page"},
    405: {"description": "The API is for reading"},
    429: {"description": "Asked too often", "headers": {"Retry-After": _WAIT}},
}


def name_answer(request: HttpRequest, response: HttpResponse, *, etag: str) -> HttpResponse:
    """Give an answer its ETag; return it, or 304 in its place if the client has it already."""
    response["ETag"] = etag
    patch_cache_control(response, public=True, no_cache=True)
    return get_conditional_response(request, etag=etag, response=response) or response


def read(
    router: Router, path: str, answer: type[Schema], *, conflicts: str = ""
) -> Callable[[View], View]:
    """Register a view that answers GET, described in the OpenAPI document, and HEAD.

    `conflicts` says what 409 means here, where that is an answer.
    """
    refusals: dict[int, Any] = {400: Problem, 404: Problem, 405: Problem, 429: Problem}
    meanings: dict[int, Any] = dict(_DOCUMENTED)
    if conflicts:
        refusals[409] = Problem
        meanings[409] = {"description": conflicts}
    responses = {200: answer, 304: None, **refusals}

    def register(view: View) -> View:
        hidden: dict[str, Any] = {"include_in_schema": False}
        router.api_operation(_OTHER_METHODS, path, **hidden)(view)
        decorate_view(answer_other_methods)(
            view
        )  # Changes what was registered last, and only that.
        router.api_operation(["HEAD"], path, response=responses, **hidden)(view)
        router.get(path, response=responses, openapi_extra={"responses": meanings})(view)
        return view

    return register
