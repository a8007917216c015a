"""Refusals of HTTP requests: one JSON shape, `{code, message, fix}`; browsers get it as a page.

    RequestError          a request cannot be answered as it was asked

Codes are dotted strings that never change their meaning, as on the node socket
(`swarm_protocol.errors`).
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

Rest = ParamSpec("Rest")
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]


class RequestError(Exception):
    """A request cannot be answered: `code` and `message` say why, `fix` what helps.

    `retry_after_s` tells, where that helps, in how many seconds the same request may be sent again.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        fix: str,
        status: int = 400,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.status = status
        self.retry_after_s = retry_after_s

    def body(self) -> dict[str, str]:
        """Return what the client reads."""
        return {"code": self.code, "message": self.message, "fix": self.fix}


def answer_refusals(view: View[Rest]) -> View[Rest]:
    """Turn a RequestError of the view into a page for browsers, and JSON for everything else."""

    @wraps(view)
    def answered(
        request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs
    ) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except RequestError as refusal:
            return _answer(request, refusal)

    return answered


def _answer(request: HttpRequest, refusal: RequestError) -> HttpResponseBase:
    # A program that takes anything gets what programs read: JSON comes first of equals.
    response: HttpResponseBase
    if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        response = render(request, "refused.html", {"refusal": refusal}, status=refusal.status)
    else:
        response = JsonResponse(refusal.body(), status=refusal.status)
    if refusal.retry_after_s is not None:
        response["Retry-After"] = str(refusal.retry_after_s)
    patch_vary_headers(response, ["Accept"])
    return response
