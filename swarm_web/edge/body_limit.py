"""ASGI middleware that refuses large request bodies without receiving them completely.

Django stores the whole body before it handles the request, so its own limits apply too late. If the
declared length is too large, this middleware refuses the body before it is read. A chunked body
(RFC 9112, 7.1) is refused as soon as too many bytes have arrived. The server discards the rest of
the body, so that the client can read the response.
"""

import json
from http import HTTPStatus

from swarm_web.core.errors import RequestError
from swarm_web.edge.page_cache import Application, Message, Receive, Scope, Send


class BodyLimit:
    """ASGI middleware that answers 413 to a request whose body has more than `max_bytes` bytes."""

    def __init__(self, application: Application, *, max_bytes: int) -> None:
        self._application, self._max_bytes = application, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request: call the application, or send the refusal."""
        # The server has parsed this number too, to find the end of the body.
        digits = dict(scope["headers"]).get(b"content-length", b"")
        # It may have more leading zeros than Python parses.
        declared = int(digits.lstrip(b"0") or 0)
        received = 0

        async def read() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            # Django discards the body of a client that disconnects, and does not respond.
            return message if received <= self._max_bytes else {"type": "http.disconnect"}

        if declared <= self._max_bytes:
            await self._application(scope, read, send)
        if max(declared, received) > self._max_bytes:
            await self._refuse(send)

    async def _refuse(self, send: Send) -> None:
        refusal = RequestError(
            "request.too_large",
            f"The body of this request is larger than {self._max_bytes} bytes.",
            fix="Send less: the site takes forms, no files.",
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        )
        body = json.dumps(refusal.body()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
