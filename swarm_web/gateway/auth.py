"""Authenticates node sockets: the bearer token is checked before the socket is accepted."""

import logging
from http import HTTPStatus

from asgiref.typing import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    Scope,
    WebSocketScope,
)

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_web.core import counters
from swarm_web.core.write_behind import STORE_ERRORS
from swarm_web.edge.addresses import network_of
from swarm_web.gateway.admission import admission
from swarm_web.gateway.denial import deny
from swarm_web.gateway.session import shared_state
from swarm_web.nodes.models import Node

logger = logging.getLogger(__name__)

_SCHEME = "bearer"
_STATUS: dict[str, HTTPStatus] = {
    ErrorCode.AUTH_INVALID: HTTPStatus.UNAUTHORIZED,
    ErrorCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.SERVER_BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.SERVER_RESTART: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.SERVER_MAINTENANCE: HTTPStatus.SERVICE_UNAVAILABLE,
}


class TokenGate:
    """ASGI middleware that puts a node's `Node` in `scope["node"]`, or refuses its handshake.

    A refusal is an HTTP response. After 401, retrying with the same token is useless; 429 and 503
    have a Retry-After header.
    """

    def __init__(self, inner: ASGI3Application) -> None:
        self._inner = inner

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Call the inner application if `_authenticate` accepts the handshake; else refuse it."""
        assert scope["type"] == "websocket"
        try:
            node = await _authenticate(scope)
        except RefusedError as refusal:
            counters.count(counters.CONNECTIONS, "denied")
            counters.count(counters.REFUSED, refusal.code)
            body: dict[str, object] = {
                "code": refusal.code,
                "message": refusal.message,
                "fix": refusal.fix,
            }
            if refusal.retry_after is not None:
                body["retry_after"] = refusal.retry_after
            await deny(scope, receive, send, status=_STATUS[refusal.code], body=body)
            return
        await self._inner({**scope, "node": node}, receive, send)  # type: ignore[arg-type]


async def _authenticate(scope: WebSocketScope) -> Node:
    """Return the node with the handshake's token.

    Raises RefusedError if the token is missing or wrong, its node is blocked, the handshake must
    wait, or a store fails.
    """
    gate = admission()
    token, network = read_token(scope), network_of(scope.get("client"), scope["headers"])
    is_known = gate.check(token, network)
    try:
        node = await shared_state().tokens.do(token) if token else None
    except STORE_ERRORS:
        logger.warning("could not look up a token", exc_info=True)
        raise gate.make_busy_error() from None
    if token and node:
        if not is_known:
            gate.count_handshake(token)
        if node.blocked:
            reason, fix = "the operator blocked this node", "Contact the operator to learn why."
            raise RefusedError(ErrorCode.AUTH_INVALID, reason, fix=fix)
        return node
    gate.count_failure(network)
    reason = "unknown or revoked token" if token else "no bearer token in the handshake"
    raise RefusedError(ErrorCode.AUTH_INVALID, reason)


def read_token(scope: WebSocketScope) -> str | None:
    """Return the token of `Authorization: Bearer <token>` (RFC 6750, 2.1); None without one."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if scheme.lower() == _SCHEME else None
    return None
