"""Real sockets for tests: the site behind uvicorn on a free port, and connections of nodes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import uvicorn
from websockets.asyncio.client import ClientConnection, connect

from swarm_protocol.codec import decode_from_server, encode
from swarm_protocol.messages import NodeMessage, ServerMessage, Welcome
from swarm_web.asgi import application
from swarm_web.local.commands import WEBSOCKETS
from tests.factories import make_hello

PATIENCE_S = 30
POLL_S = 0.001


@asynccontextmanager
async def running_gateway() -> AsyncIterator[str]:
    """Serve the site in this event loop, as in production, and yield its `ws://` address."""
    config = uvicorn.Config(
        application,
        ws=WEBSOCKETS,
        ws_per_message_deflate=False,
        ws_max_size=4 << 20,
        lifespan="off",
        log_config=None,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    listener = socket.create_server(("127.0.0.1", 0))
    await server.startup(sockets=[listener])
    try:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await close_gateway(server)
        listener.close()


async def close_gateway(server: uvicorn.Server) -> None:
    """Close all connections, and wait until they are closed.

    `Server.serve` does so too, but it checks for its end only every 0.1 s.
    """
    state = server.server_state
    for listening in server.servers:
        listening.close()
    for connection in tuple(state.connections):
        connection.shutdown()
    async with asyncio.timeout(PATIENCE_S):
        while state.connections or state.tasks:  # noqa: ASYNC110  uvicorn has no event for it
            await asyncio.sleep(POLL_S)


class NodeSocket:
    """A node's end of a connection. Messages that are not replies are collected in `rings`."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.rings: list[ServerMessage] = []

    async def hear(self) -> ServerMessage:
        """Return the next message."""
        async with asyncio.timeout(PATIENCE_S):
            return decode_from_server(await self.connection.recv())

    async def send(self, frame: str | bytes | msgspec.Struct) -> None:
        """Send a message, or a frame without encoding."""
        await self.connection.send(encode(frame) if isinstance(frame, msgspec.Struct) else frame)

    async def ask(self, message: NodeMessage) -> ServerMessage:
        """Send a request and return its reply."""
        await self.send(message)
        while (heard := await self.hear()).reply_to != message.id:
            self.rings.append(heard)
        return heard

    async def close_code(self) -> int:
        """Wait until the server has closed the connection and return the code."""
        async with asyncio.timeout(PATIENCE_S):
            await self.connection.wait_closed()
        assert self.connection.close_code is not None
        return self.connection.close_code


@asynccontextmanager
async def node_socket(url: str, token: str, *, greet: bool = True) -> AsyncIterator[NodeSocket]:
    """Connect a node with its token and, unless `greet` is false, say hello."""
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(f"{url}/ws/node/", additional_headers=headers) as connection:
        node = NodeSocket(connection)
        if greet:
            assert isinstance(await node.ask(make_hello()), Welcome)
        yield node
