"""What all operations of the read API share: methods, errors, the rate limit, and ETags.

GET, HEAD and OPTIONS are answered, other methods refused. Errors are `{code, message, fix}`. Each
response with status 200 has an ETag; a client that sends it in If-None-Match receives 304 while
nothing has changed.
"""

import logging
import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis.exceptions
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import get_conditional_response, patch_cache_control
from ninja import NinjaAPI, Router
from ninja.decorators import decorate_view
from ninja.errors import Throttled, ValidationError
from ninja.throttling import BaseThrottle
from pydantic import BaseModel

from swarm_web.core.errors import RequestError
from swarm_web.core.store import sync_redis
from swarm_web.dashboard.api.fields import Problem
from swarm_web.dashboard.api.paging import MAX_PAGE
from swarm_web.edge.addresses import network_of_request

logger = logging.getLogger(__name__)

View = TypeVar("View", bound=Callable[..., Any])

METHODS = ("GET", "HEAD", "OPTIONS")
# The period of the limit of requests, in seconds.
PERIOD_S = 60

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
    """Set a response's ETag and Cache-Control, and return the response to send.

    This is a 304 if the client already has the version that `etag` names, a 412 if the request's
    If-Match excludes it, and otherwise `response`.
    """
    response["ETag"] = etag
    patch_cache_control(response, public=True, no_cache=True)
    return get_conditional_response(request, etag=etag, response=response) or response


def read(
    router: Router, path: str, answer: type[BaseModel], *, conflicts: str = ""
) -> Callable[[View], View]:
    """Return a decorator that registers a view for GET and HEAD of a path.

    Other methods are refused, except OPTIONS. `answer` is the schema of the response. If the view
    may refuse with 409, `conflicts` says what that means. The OpenAPI document describes GET only.
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
        # Changes what was registered last, and only that.
        decorate_view(refuse_other_methods)(view)
        router.api_operation(["HEAD"], path, response=responses, **hidden)(view)
        router.get(path, response=responses, openapi_extra={"responses": meanings})(view)
        return view

    return register


# ---- errors


def register_error_handlers(api: NinjaAPI) -> None:
    """Make an API answer refusals, invalid parameters, 404 and 429 as `{code, message, fix}`."""

    def answer_refusal(request: HttpRequest, problem: Exception | type[Exception]) -> HttpResponse:
        refusal = translate(problem)
        return api.create_response(request, refusal.body(), status=refusal.status)

    for kind in (RequestError, ValidationError, Http404, Throttled):
        api.add_exception_handler(kind, answer_refusal)


def translate(problem: Exception | type[Exception]) -> RequestError:
    """Return the RequestError for an exception of a kind that `register_error_handlers` handles."""
    if isinstance(problem, RequestError):
        return problem
    if isinstance(problem, ValidationError):
        wrong = "; ".join(f"{error['loc'][-1]}: {error['msg']}" for error in problem.errors)
        return RequestError("query.invalid", wrong, fix="See /api/docs for the parameters.")
    if isinstance(problem, Throttled):
        wait = math.ceil(problem.wait or 1)
        return RequestError(
            "rate.limited",
            "Your address has asked too often in this minute.",
            fix=f"Ask again in {wait} s, and send If-None-Match with the ETag that you have.",
            status=429,
        )
    return RequestError(
        "not_found",
        "There is nothing of that name or number.",
        fix="List what there is with /api/v1/nodes, /api/v1/rounds or /api/v1/tasks.",
        status=404,
    )


def refuse_other_methods(_run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view that answers OPTIONS and refuses all other methods.

    For methods other than GET and HEAD, `read` uses this view in place of the view `_run`.
    """
    allowed = {"Allow": ", ".join(METHODS)}

    def answer(request: HttpRequest, **path: str) -> HttpResponse:
        if request.method == "OPTIONS":
            return HttpResponse(status=204, headers=allowed)
        refusal = RequestError(
            "method",
            f"{request.method} is not possible here: the API is for reading.",
            fix=f"Use {allowed['Allow']}.",
            status=405,
        )
        return JsonResponse(refusal.body(), status=405, headers=allowed)

    return answer


# ---- the limit of requests


class AddressThrottle(BaseThrottle):
    """Limits the requests of a client's network in each clock minute, over all web processes.

    The limit is API_REQUESTS_PER_MINUTE; 0 means none. Without Redis no request is refused.
    """

    def allow_request(self, request: HttpRequest) -> bool:
        """Count a request, and return whether it is within the limit.

        Without a limit, requests are not counted, and the result is True.
        """
        limit: int = settings.API_REQUESTS_PER_MINUTE
        return not limit or self.count(request) <= limit

    def count(self, request: HttpRequest, requests: int = 1) -> int:
        """Add `requests` to the count of the client's network in this minute; return the sum.

        Returns 0 while Redis is unavailable.
        """
        minute = int(time.time() // PERIOD_S)
        key = f"api:requests:{minute}:{network_of_request(request)}"
        try:
            with sync_redis().pipeline() as pipeline:
                pipeline.incrby(key, requests)
                pipeline.expire(key, PERIOD_S)
                counted, _ = pipeline.execute()
        except redis.exceptions.RedisError:
            logger.warning("could not count a request", exc_info=True)
            return 0
        return int(counted)

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return PERIOD_S - time.time() % PERIOD_S


def count_rows(request: HttpRequest, *, rows: int) -> None:
    """Count a response of many rows as one request for every MAX_PAGE rows, rounded up.

    The client's request was already counted as one when it arrived, so this function adds the
    rest. The response is sent even if the count now exceeds the limit; later requests in the same
    minute are then refused. Without a limit nothing is counted.
    """
    further = math.ceil(rows / MAX_PAGE) - 1
    if settings.API_REQUESTS_PER_MINUTE and further > 0:
        AddressThrottle().count(request, further)
