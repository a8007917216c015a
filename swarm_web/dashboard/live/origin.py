"""Which pages may open the browsers' socket: those of this site."""

from typing import Any
from urllib.parse import urlsplit

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier


class OriginGate:
    """Let browsers in whose page is of one of ALLOWED_HOSTS; others get HTTP 403.

    Channels compares the Origin (RFC 6454), but fails on one that is no address.
    """

    def __init__(self, inner: Any) -> None:
        self._validator = AllowedHostsOriginValidator(inner)

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Answer one handshake."""
        asked: Any = scope
        origins = [value.decode("latin-1") for name, value in asked["headers"] if name == b"origin"]
        answer = self._validator if all(map(_is_address, origins)) else WebsocketDenier()
        await answer(scope, receive, send)


def _is_address(origin: str) -> bool:
    try:
        urlsplit(origin)
    except ValueError:
        return False
    return True
