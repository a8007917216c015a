"""The browser's socket at /ws/live/: a snapshot, then sequence-numbered deltas.

The query string selects the view: `view=home`, `view=pill`, or `view=board` (the default), which
accepts the parameters of the leaderboard's page. `lang` is the language. A browser that reconnects
adds `resume=<epoch>:<seq>` with the values of the last message that it received. It then receives
the later messages if they are still kept, otherwise a snapshot. With `packed=1` messages are
gzipped JSON in binary frames. A socket stays open only while its view is up to date.

It is a plain ASGI application, so that thousands of open sockets cost little.
"""

import asyncio
import contextlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier

from swarm_web.core.errors import RequestError
from swarm_web.dashboard.live.board import (
    STALE_S,
    TooManyViewsError,
    UnreadableViewError,
    live_board,
)
from swarm_web.dashboard.live.stream import Packet, ViewStream
from swarm_web.dashboard.live.views import read_key
from swarm_web.edge.addresses import network_of

CLOSE_BAD_QUERY = 4400
CLOSE_TOO_MANY_VIEWS = 4429
CLOSE_UNREADABLE = 4503


# ---- the origin check


class OriginGate:
    """Accepts browsers whose page is on one of ALLOWED_HOSTS; refuses others with HTTP 403.

    The header Origin (RFC 6454) says where the page comes from. A browser whose Origin is not a
    valid URL is refused too; the validator of Channels alone would raise an error.
    """

    def __init__(self, inner: Any) -> None:
        self._validator = AllowedHostsOriginValidator(inner)

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Pass a handshake on to the inner application, or refuse it."""
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


# ---- the socket


async def live_socket(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Send a view's messages until the browser disconnects, or close with a CLOSE_ code."""
    asked: Any = scope
    params = dict(parse_qsl(asked["query_string"].decode("ascii", "replace")))
    network = network_of(asked.get("client"), asked["headers"])
    await receive()
    await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
    try:
        async with live_board().watch(read_key(params), network=network) as stream:
            await _serve(stream, receive, send, params)
    except RequestError as refusal:
        await _close(send, CLOSE_BAD_QUERY, refusal.code)
    except TooManyViewsError as refusal:
        await _close(send, CLOSE_TOO_MANY_VIEWS, str(refusal))
    except UnreadableViewError:
        await _close(send, CLOSE_UNREADABLE, "cannot be read now")


async def _serve(
    stream: ViewStream, receive: ASGIReceiveCallable, send: ASGISendCallable, params: dict[str, str]
) -> None:
    """Send a view's messages until the browser disconnects."""
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(_send_updates(stream, send, params))
        # Messages from browsers are ignored.
        while (await receive())["type"] != "websocket.disconnect":
            pass
        sending.cancel()


async def _close(send: ASGISendCallable, code: int, reason: str) -> None:
    await send({"type": "websocket.close", "code": code, "reason": reason})


async def _send_updates(stream: ViewStream, send: ASGISendCallable, params: dict[str, str]) -> None:
    """Send a snapshot, or `resumed` if `ViewStream.resume` allows it; then send every delta.

    If the latest reading is older than STALE_S seconds, the view is no longer live, and the socket
    is closed with CLOSE_UNREADABLE. Slow browsers do not delay others.
    """
    packed = params.get("packed") == "1"

    async def write(packet: Packet) -> None:
        text, data = (None, packet.packed) if packed else (packet.text, None)
        await send({"type": "websocket.send", "text": text, "bytes": data})

    seq = stream.resume(params.get("resume", ""))
    if seq is None:
        packet = stream.snapshot()
        seq = packet.seq
    else:
        packet = stream.greet_again()
    # A server raises OSError once the browser has disconnected; the loop in _serve ends as well.
    with contextlib.suppress(OSError):
        while True:
            await write(packet)
            try:
                async with asyncio.timeout(STALE_S - stream.age()):
                    packet = await stream.wait_after(seq)
            except TimeoutError:
                await _close(send, CLOSE_UNREADABLE, "cannot be read now")
                return
            seq = packet.seq
