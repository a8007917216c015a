"""uvicorn's websockets, on sockets that end when nobody takes what was sent.

asyncio closes a socket once its buffer is written, and never where the other end reads nothing but
answers the system's probes: a node that is dropped for this would keep the socket and up to some
megabytes of buffers for as long as it likes. `uvicorn --ws` takes this class by its name.
"""

import socket
from asyncio.transports import BaseTransport

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Longer than uvicorn waits for a pong, and than a socket may take nothing (`roster.STALLED_S`).
UNTAKEN_MS = 90_000
# Not every system has it.
_USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)


class NodeTransport(WebSocketsSansIOProtocol):
    """A websocket whose connection the system gives up when what was sent is not taken."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Have the system watch what is sent (RFC 5482)."""
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if _USER_TIMEOUT is not None and connection.family != getattr(socket, "AF_UNIX", None):
            connection.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, UNTAKEN_MS)
