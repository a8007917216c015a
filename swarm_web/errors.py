"""Refusals of HTTP requests: one JSON shape, `{code, message, fix}`, for the API and downloads.

    RequestError          a request cannot be answered as it was asked

Codes are dotted strings that never change their meaning, as on the node socket
(`swarm_protocol.errors`).
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase, JsonResponse

Rest = ParamSpec("Rest")
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]


class RequestError(Exception):
    """A request cannot be answered: `code` and `message` say why, `fix` what helps."""

    def __init__(self, code: str, message: str, *, fix: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.status = status

    def body(self) -> dict[str, str]:
        """Return what the client reads."""
        return {"code": self.code, "message": self.message, "fix": self.fix}


def answer_refusals(view: View[Rest]) -> View[Rest]:
    """Turn a RequestError of the view into its JSON response."""

    @wraps(view)
    def answered(
        request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs
    ) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except RequestError as refusal:
            return JsonResponse(refusal.body(), status=refusal.status)

    return answered
