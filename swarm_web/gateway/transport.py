"""uvicorn's websocket protocol with a limit on the time that sent data stays unacknowledged.

asyncio closes a socket only after its buffer is written. If the peer stops reading while its
operating system still answers TCP's probes, asyncio never closes the socket, which then keeps some
megabytes of buffers. `uvicorn --ws` loads the class of this module by name.
"""

import socket
from asyncio.transports import BaseTransport

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Longer than uvicorn waits for a pong, and than a socket may stall (`roster.STALLED_S`).
UNACKNOWLEDGED_MS = 90_000
# Not available on every system.
_USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)


class NodeTransport(WebSocketsSansIOProtocol):
    """A websocket that the operating system closes if sent data is not acknowledged in time."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Set the TCP user timeout (RFC 5482) of a TCP socket, if the platform supports it."""
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if _USER_TIMEOUT is not None and connection.family != getattr(socket, "AF_UNIX", None):
            connection.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, UNACKNOWLEDGED_MS)
