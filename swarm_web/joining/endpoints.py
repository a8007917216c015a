"""Endpoints for clients: request a code, and fetch the token after its approval (RFC 8628)."""

from collections.abc import Callable
from functools import wraps

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from swarm_protocol.joining import DEVICE_PATH, GRANT_TYPE, DeviceCode, DeviceError
from swarm_web.edge.addresses import network_of_request
from swarm_web.joining.models import JoinRequest
from swarm_web.joining.services import (
    DeviceFlowError,
    JoinRequester,
    collect,
    request_node,
    request_owner,
)

_View = Callable[[HttpRequest], msgspec.Struct]


def _answer_client(view: _View) -> Callable[[HttpRequest], HttpResponse]:
    """Make a view accept only POST, without a CSRF check, and return JSON.

    Errors have the form of RFC 6749, section 5.2.
    """

    @wraps(view)
    def answered(request: HttpRequest) -> HttpResponse:
        status, reply = 200, None
        try:
            reply = view(request)
        except DeviceFlowError as error:
            status = error.status
            reply = DeviceError(error=error.error, error_description=error.description)
        response = HttpResponse(
            msgspec.json.encode(reply), content_type="application/json", status=status
        )
        response["Cache-Control"] = "no-store"
        return response

    # Clients send no cookies, so there is no session that another site could abuse.
    return csrf_exempt(require_POST(answered))


@_answer_client
def device_code(request: HttpRequest) -> msgspec.Struct:
    """Create a request and return its device code and user code.

    A client that sends a node's token requests an owner for this node; any other client requests a
    token. Raises DeviceFlowError if the request is not allowed.
    """
    form = request.POST
    requester = JoinRequester(
        network=network_of_request(request),
        client_version=_read_text(form.get("client_version", ""), 64),
        model=_read_text(form.get("model", ""), 200),
    )
    now = timezone.now()
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        created, secret = request_owner(requester, token.strip(), now=now)
    else:
        created, secret = request_node(
            requester, now=now, anonymous=form.get("anonymous") == "true"
        )
    return _describe(created, secret, page=request.build_absolute_uri(DEVICE_PATH))


@_answer_client
def device_token(request: HttpRequest) -> msgspec.Struct:
    """Return the token for a device code.

    Raises DeviceFlowError if the form is invalid or the token cannot be collected now.
    """
    if request.POST.get("grant_type") != GRANT_TYPE:
        raise DeviceFlowError("unsupported_grant_type", f"grant_type must be {GRANT_TYPE}.")
    device_code = request.POST.get("device_code", "")
    if not device_code or not device_code.isascii():
        raise DeviceFlowError("invalid_request", "device_code is missing or not one of this site.")
    return collect(device_code, now=timezone.now())


def _describe(created: JoinRequest, secret: str, *, page: str) -> DeviceCode:
    return DeviceCode(
        device_code=secret,
        user_code=str(created),
        verification_uri=page,
        verification_uri_complete=f"{page}?code={created}",
        expires_in=int((created.expires_at - created.created_at).total_seconds()),
        interval=created.interval_s,
    )


def _read_text(text: str, max_length: int) -> str:
    """Return a client's text without control characters, cut to `max_length` characters."""
    return "".join(letter for letter in text if letter.isprintable())[:max_length]
