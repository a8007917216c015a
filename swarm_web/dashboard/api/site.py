"""The read API under /api/: the same rows as the pages, as JSON.

Scores are fractions in [0, 1], times ISO 8601 in UTC. Errors are `{code, message, fix}`. Every
answer has an ETag; who sends it back in If-None-Match gets 304 as long as nothing has changed.
"""

import json
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.responses import NinjaJSONEncoder

from swarm_web.dashboard.api.errors import answer_errors
from swarm_web.dashboard.api.limits import AddressThrottle
from swarm_web.dashboard.api.reading import name_answer
from swarm_web.dashboard.api.views import (
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


class ReadAPI(NinjaAPI):
    """An API whose answers carry an ETag, and are not sent to who has them already."""

    def create_response(
        self,
        request: HttpRequest,
        data: Any,
        *,
        status: int | None = None,
        temporal_response: HttpResponse | None = None,
    ) -> HttpResponse:
        """Return an answer, or 304 if the client has it; a view may have named its ETag."""
        response = super().create_response(
            request, data, status=status, temporal_response=temporal_response
        )
        if response.status_code != 200:
            return response
        etag = response.get("ETag") or _digest(data, response.content)
        return name_answer(request, response, etag=etag)


def _digest(data: Any, content: bytes) -> str:
    """Return the ETag of an answer; the moment at which it was read makes no other answer."""
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
answer_errors(api)
for views in (board, comparison, lab, nodes, rollouts, rounds, seasons, status, tasks):
    api.add_router("/v1", views.router)
