"""Connect the nodes of a benchmark to a site over websockets, and send their requests."""

import asyncio
from typing import Literal

from websockets.asyncio.client import ClientConnection, connect

from swarm_protocol.codec import decode_from_server, encode
from swarm_protocol.messages import Hello, NodeMessage, ServerMessage, Welcome
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION

# The usual limit for a `gate`: with more, the listen backlog could overflow.
MAX_CONNECTING = 50


async def join(
    url: str,
    token: str,
    gate: asyncio.Semaphore,
    *,
    arm: Literal["swarm", "isolated"] = "swarm",
    key: str | None = None,
) -> tuple[ClientConnection, Welcome]:
    """Connect a node, send its hello and return its connection and the welcome.

    `gate` limits concurrent connecting; `key` is the public key with which the node signs.
    """
    async with gate:
        connection = await connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            ping_interval=None,
            open_timeout=120,
            max_queue=2,
        )
        hello = Hello(
            id="hello",
            protocol=PROTOCOL_VERSION,
            client=CLIENT_VERSION,
            model="bench",
            tokenizer="bench",
            arm=arm,
            key=key,
        )
        welcome = await request(connection, hello)
        assert isinstance(welcome, Welcome), welcome
        return connection, welcome


async def request(connection: ClientConnection, message: NodeMessage) -> ServerMessage:
    """Send a request and return its reply; other messages in between are ignored."""
    await connection.send(encode(message))
    while (reply := decode_from_server(await connection.recv())).reply_to != message.id:
        pass
    return reply
