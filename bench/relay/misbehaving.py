"""Misbehaving nodes: some are silent, some do not read replies, and some flood the relay.

    python -m bench.relay.misbehaving SOCKET TOKENS

The process prints `ready` once all nodes are connected, and runs until it is killed or the relay
has closed all connections.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path

from websockets.exceptions import ConnectionClosed

from bench.relay.load import LoadNode, connect_all
from swarm_protocol.codec import encode
from swarm_protocol.messages import RequestRollouts

_MAX_CONNECTING = 16


async def be_silent(_node: LoadNode) -> None:
    """Stay connected without sending anything."""
    await asyncio.Event().wait()


async def read_nothing(node: LoadNode) -> None:
    """Send requests that have large replies, as fast as possible, and read none of the replies."""
    for number in count():
        await node.connection.send(encode(RequestRollouts(id=f"r{number}", count=64)))


async def flood(node: LoadNode) -> None:
    """Send invalid messages without pause, and read the refusal of each one."""
    while True:
        await node.connection.send("x" * 1000)
        await node.connection.recv()


KINDS = (be_silent, read_nothing, flood)


async def run_misbehaving(url: str, tokens: Sequence[str]) -> None:
    """Connect a node for each token, and assign the nodes the behaviours of KINDS in turn."""
    nodes = await connect_all(url, tokens, max_connecting=_MAX_CONNECTING)
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    await asyncio.gather(
        *(_run_until_closed(KINDS[i % len(KINDS)], node) for i, node in enumerate(nodes))
    )


async def _run_until_closed(behave: Callable[[LoadNode], Awaitable[None]], node: LoadNode) -> None:
    try:
        await behave(node)
    except ConnectionClosed:
        return  # the relay closed the connection, as it should


if __name__ == "__main__":
    asyncio.run(run_misbehaving(sys.argv[1], Path(sys.argv[2]).read_text().split()))
