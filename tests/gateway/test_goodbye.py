"""Goodbyes: which endings of a connection show that the client left on purpose."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.frames import CloseCode

from swarm_web.nodes.models import Node
from tests.gateway.conftest import Member
from tests.processes import POLL_S
from tests.sockets import PATIENCE_S, node_socket, running_gateway


async def say_goodbye(connection: ClientConnection) -> None:
    await connection.close(CloseCode.GOING_AWAY, "the node stopped")


async def close_normally(connection: ClientConnection) -> None:
    await connection.close()


async def abort_connection(connection: ClientConnection) -> None:
    connection.transport.abort()


async def said_goodbye() -> bool:
    """Wait until the end of the connection is stored, and return whether it was a goodbye."""
    async with asyncio.timeout(PATIENCE_S):
        while (node := await Node.objects.aget(name="amber")).left_at is None:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
    return node.said_goodbye


@pytest.mark.parametrize(
    ("end", "expected"), [(say_goodbye, True), (close_normally, False), (abort_connection, False)]
)
async def test_only_close_code_going_away_is_a_goodbye(
    amber: Member, end: Callable[[ClientConnection], Awaitable[None]], expected: bool
) -> None:
    async with running_gateway() as url, node_socket(url, amber.token) as socket:
        await end(socket.connection)
    assert await said_goodbye() is expected


async def test_connection_closed_by_the_server_is_not_a_goodbye(amber: Member) -> None:
    async with running_gateway() as url:
        async with node_socket(url, amber.token) as earlier:
            await say_goodbye(earlier.connection)
        socket = node_socket(url, amber.token)
        await socket.__aenter__()
    assert await said_goodbye() is False


async def test_connection_without_a_hello_does_not_clear_a_goodbye(amber: Member) -> None:
    async with running_gateway() as url:
        async with node_socket(url, amber.token) as socket:
            await say_goodbye(socket.connection)
        assert await said_goodbye()
        async with node_socket(url, amber.token, greet=False):
            pass
    assert await said_goodbye() is True
