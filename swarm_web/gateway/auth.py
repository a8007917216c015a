"""Who may open a node socket: the bearer token is checked before the socket is accepted."""

from http import HTTPStatus

from asgiref.typing import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    Scope,
    WebSocketScope,
)

from swarm_protocol.errors import FIXES, ErrorCode
from swarm_web import counters
from swarm_web.gateway.denial import deny
from swarm_web.gateway.session import shared_reads

_SCHEME = "bearer"


class TokenGate:
    """Let a node in with its `Node` as `scope["node"]`, or answer HTTP 401 with the reason."""

    def __init__(self, inner: ASGI3Application) -> None:
        self._inner = inner

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Authenticate one handshake."""
        assert scope["type"] == "websocket"
        token = read_token(scope)
        node = await shared_reads().tokens.do(token) if token else None
        if node is None:
            counters.count(counters.CONNECTIONS, "denied")
            counters.count(counters.REFUSED, ErrorCode.AUTH_INVALID)
            reason = "unknown or revoked token" if token else "no bearer token in the handshake"
            body = {
                "code": ErrorCode.AUTH_INVALID,
                "message": reason,
                "fix": FIXES[ErrorCode.AUTH_INVALID],
            }
            await deny(scope, receive, send, status=HTTPStatus.UNAUTHORIZED, body=body)
            return
        await self._inner({**scope, "node": node}, receive, send)  # type: ignore[arg-type]


def read_token(scope: WebSocketScope) -> str | None:
    """Return the token of `Authorization: Bearer <token>` (RFC 6750, 2.1), if there is one."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if scheme.lower() == _SCHEME else None
    return None
