"""Assertions shared by the tests of bad input."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from swarm_protocol.messages import (
    Hello,
    Refused,
    RequestRound,
    RoundState,
)
from tests.gateway.conftest import Member
from tests.gateway.sessions import read_counts
from tests.sockets import NodeSocket, node_socket

ASK = RequestRound(id="ask")


@asynccontextmanager
async def two_nodes(url: str, amber: Member, bold: Member) -> AsyncIterator[NodeSocket]:
    """Connect both nodes, yield the first, and check that the second is unaffected."""
    async with node_socket(url, bold.token) as bystander, node_socket(url, amber.token) as sender:
        yield sender
        assert isinstance(await bystander.ask(ASK), RoundState)
        assert bystander.rings == []


async def assert_refused_for_good(sender: NodeSocket, message: Hello, code: str) -> None:
    """Check that a hello is refused with a code and the connection is closed with 4426."""
    refused = await sender.ask(message)
    assert isinstance(refused, Refused), refused
    assert (refused.code, refused.fatal) == (code, True), refused
    assert await sender.close_code() == 4426


async def assert_refused(
    sender: NodeSocket, frame: Any, code: str, *, reply_to: str | None = None
) -> None:
    """Check that a frame is refused with a code and a fix and counted, but does not disconnect."""
    await sender.send(frame)
    refused = await sender.hear()
    assert isinstance(refused, Refused), refused
    assert (refused.code, refused.reply_to, refused.fatal) == (code, reply_to, False), refused
    assert refused.message
    assert refused.fix
    assert isinstance(await sender.ask(ASK), RoundState)
    assert (await read_counts())["refused"] == {code: 1}
