"""How the read API refuses: `{code, message, fix}`, whatever went wrong."""

import math
from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import Throttled, ValidationError

from swarm_web.errors import RequestError

METHODS = ("GET", "HEAD", "OPTIONS")


def answer_errors(api: NinjaAPI) -> None:
    """Let an API answer errors in one shape."""

    def answer_refusal(request: HttpRequest, problem: Exception | type[Exception]) -> HttpResponse:
        refusal = translate(problem)
        return api.create_response(request, refusal.body(), status=refusal.status)

    for kind in (RequestError, ValidationError, Http404, Throttled):
        api.add_exception_handler(kind, answer_refusal)


def translate(problem: Exception | type[Exception]) -> RequestError:
    """Return what a person is told of a problem."""
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


def answer_other_methods(_run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view in the place of another: it tells OPTIONS what is possible, else refuses."""
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
