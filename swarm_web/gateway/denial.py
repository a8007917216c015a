"""Refuse a websocket before it is accepted, with an HTTP status and a body that says why.

Uses the ASGI extension `websocket.http.response`; a server without it can only close, which
browsers and clients see as HTTP 403.
"""

import math
from http import HTTPStatus
from typing import Any

import msgspec
from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, WebSocketScope

_EXTENSION = "websocket.http.response"


async def deny(
    scope: WebSocketScope,
    receive: ASGIReceiveCallable,
    send: ASGISendCallable,
    *,
    status: HTTPStatus,
    body: dict[str, Any],
) -> None:
    """Answer the handshake with `status` and `body` as JSON instead of accepting it.

    A `retry_after` of the body is told in the header too, in whole seconds as HTTP has it.
    """
    await receive()  # websocket.connect, which ASGI wants read first.
    if _EXTENSION not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 4000 + status, "reason": status.phrase})
        return
    headers = [(b"content-type", b"application/json")]
    if (wait_s := body.get("retry_after")) is not None:
        headers.append((b"retry-after", b"%d" % math.ceil(wait_s)))
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send(
        {
            "type": "websocket.http.response.body",
            "body": msgspec.json.encode(body),
            "more_body": False,
        }
    )


async def deny_unknown_path(
    scope: WebSocketScope, receive: ASGIReceiveCallable, send: ASGISendCallable
) -> None:
    """Refuse a socket on a path where none is served, as an ASGI application."""
    body = {"message": "no socket here", "fix": "Nodes use /ws/node/, browsers /ws/live/."}
    await deny(scope, receive, send, status=HTTPStatus.NOT_FOUND, body=body)
