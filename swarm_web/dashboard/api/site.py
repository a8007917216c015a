"""The read API under /api/ and its documentation. The API returns the content of pages as JSON.

Scores are fractions in [0, 1]; times are in UTC, in the format of ISO 8601.
"""

import json
from functools import cache
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import conditional_page, require_safe
from ninja import NinjaAPI
from ninja.operation import Operation
from ninja.responses import NinjaJSONEncoder

from swarm_web.dashboard.api import (
    board,
    comparison,
    lab,
    nodes,
    rollouts,
    rounds,
    seasons,
    status,
    tasks,
)
from swarm_web.dashboard.api.documents import describe_operations, describe_shapes
from swarm_web.dashboard.api.reading import (
    AddressThrottle,
    name_answer,
    register_error_handlers,
    translate,
)


class ReadAPI(NinjaAPI):
    """An API whose responses with status 200 have an ETag.

    A client that already has the response receives 304 instead.
    """

    def create_response(
        self,
        request: HttpRequest,
        data: Any,
        *,
        status: int | None = None,
        temporal_response: HttpResponse | None = None,
    ) -> HttpResponse:
        """Return a response, with status 304 instead of 200 if the client has it already.

        A response with status 200 gets an ETag: the view's if it has set one, otherwise a hash of
        the content. Responses with another status are returned unchanged.
        """
        response = super().create_response(
            request, data, status=status, temporal_response=temporal_response
        )
        if response.status_code != 200:
            return response
        etag = response.get("ETag") or _digest(data, response.content)
        return name_answer(request, response, etag=etag)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the view's name as id; ninja's own ids would change when a file is moved."""
        return operation.view_func.__name__


def _digest(data: Any, content: bytes) -> str:
    """Return an ETag: a hash of a response's content without the time in its field `as_of`."""
    if isinstance(data, dict) and "as_of" in data:
        content = content.replace(json.dumps(data["as_of"], cls=NinjaJSONEncoder).encode(), b"")
    return f'W/"{blake2b(content, digest_size=16).hexdigest()}"'


api = ReadAPI(
    title=f"{settings.SITE_NAME} read API",
    version="1",
    description="What the pages show, as JSON. Public, read-only, without authentication.",
    openapi_url=None,
    docs_url=None,
    throttle=AddressThrottle(),
    servers=[{"url": "/"}],
)
register_error_handlers(api)
for noun in (board, comparison, lab, nodes, rollouts, rounds, seasons, status, tasks):
    api.add_router("/v1", noun.router)


@cache
def read_document() -> dict[str, Any]:
    """Return the OpenAPI document, cached because it depends only on the code and settings."""
    return dict(api.get_openapi_schema(path_prefix="api/"))


@require_safe
@conditional_page
def openapi(_request: HttpRequest) -> HttpResponse:
    """Answer with the OpenAPI document."""
    return JsonResponse(read_document())


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Show the page that documents the read API."""
    document = read_document()
    context = {
        "operations": describe_operations(document),
        "shapes": describe_shapes(document),
        "requests_per_minute": settings.API_REQUESTS_PER_MINUTE,
    }
    return render(request, "api_docs.html", context)


def unknown(_request: HttpRequest) -> HttpResponse:
    """Answer 404 for an address that the API does not have."""
    refusal = translate(Http404())
    return JsonResponse(refusal.body(), status=refusal.status)
