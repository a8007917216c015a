"""Errors of HTTP requests, sent as JSON `{code, message, fix}` or, to browsers, as a page.

Codes are dotted strings that never change their meaning, as on the node socket
(`swarm_protocol.errors`).
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

Rest = ParamSpec("Rest")
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]


class RequestError(Exception):
    """A request cannot be answered: `code` and `message` state why, `fix` what to do.

    `status` is the HTTP status of the response. `retry_after_s`, if set, is the number of seconds
    after which the same request may be repeated.
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
        """Return the JSON body of the response."""
        return {"code": self.code, "message": self.message, "fix": self.fix}


def check_choice(parameter: str, text: str, choices: Iterable[str]) -> None:
    """Raise RequestError unless `text`, the value of a parameter, is one of the choices.

    The error's `fix` lists the choices, except an empty one, which stands for a missing parameter.
    """
    known = list(choices)
    if text not in known:
        raise RequestError(
            f"query.{parameter}",
            f"There is no {parameter} {text[:40]!r}.",
            fix=f"Use one of {', '.join(filter(None, known))}.",
        )


def answer_refusals(view: View[Rest]) -> View[Rest]:
    """Decorate a view: a RequestError becomes JSON, or a page if the client prefers HTML."""

    @wraps(view)
    def wrapped(
        request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs
    ) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except RequestError as refusal:
            return _render_error(request, refusal)

    return wrapped


def _render_error(request: HttpRequest, refusal: RequestError) -> HttpResponseBase:
    # JSON is first, so that clients that accept anything get it.
    response: HttpResponseBase
    if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        response = render(request, "refused.html", {"refusal": refusal}, status=refusal.status)
    else:
        response = JsonResponse(refusal.body(), status=refusal.status)
    if refusal.retry_after_s is not None:
        response["Retry-After"] = str(refusal.retry_after_s)
    patch_vary_headers(response, ["Accept"])
    return response
