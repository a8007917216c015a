"""Refuses a websocket before it is accepted, with an HTTP status and a body with the reason.

Uses the ASGI extension `websocket.http.response`; a server without this extension can only close
the socket, which browsers and clients see as HTTP 403.
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

    If the body has `retry_after`, it is also sent as the header Retry-After, rounded up to whole
    seconds as HTTP requires. A server without the ASGI extension `websocket.http.response` only
    closes the socket.
    """
    await receive()  # websocket.connect, which ASGI requires to be read first
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
    """Refuse a websocket with status 404; this is the ASGI application for unknown paths."""
    body = {"message": "no socket here", "fix": "Nodes use /ws/node/, browsers /ws/live/."}
    await deny(scope, receive, send, status=HTTPStatus.NOT_FOUND, body=body)
