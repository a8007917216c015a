"""The OpenAPI document, the page that tells it to people, and addresses that do not exist."""

from functools import cache
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import conditional_page, require_safe

from swarm_web.dashboard.api.documents import describe_operations, describe_shapes
from swarm_web.dashboard.api.errors import translate
from swarm_web.dashboard.api.site import api


@cache
def read_document() -> dict[str, Any]:
    """Return the OpenAPI document; it changes with the code only."""
    return dict(api.get_openapi_schema(path_prefix="api/"))


@require_safe
@conditional_page
def openapi(_request: HttpRequest) -> HttpResponse:
    """Answer with the OpenAPI document."""
    return JsonResponse(read_document())


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Tell people what the read API offers."""
    document = read_document()
    context = {
        "operations": describe_operations(document),
        "shapes": describe_shapes(document),
        "requests_per_minute": settings.API_REQUESTS_PER_MINUTE,
    }
    return render(request, "api_docs.html", context)


def unknown(_request: HttpRequest) -> HttpResponse:
    """Refuse an address that is none of the API's."""
    refusal = translate(Http404())
    return JsonResponse(refusal.body(), status=refusal.status)
