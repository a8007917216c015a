"""Evidence of conduct: invalid messages, floods and unread replies."""

import asyncio
from time import monotonic
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from judge.models import Season
from swarm_protocol.codec import decode_from_server
from swarm_protocol.messages import PublishRollouts, RequestRound
from swarm_web.core import bus
from swarm_web.gateway import quota, roster
from swarm_web.gateway.inbox import MAX_AHEAD
from swarm_web.nodes.models import Node
from swarm_web.relay.hub import hub
from swarm_web.relay.models import Conduct
from tests.factories import make_rollout
from tests.gateway.conftest import Member
from tests.gateway.sessions import read_counts, write_collected
from tests.gateway.stalling import stalled
from tests.sockets import PATIENCE_S, NodeSocket, node_socket

# More than fits into the buffers between two local sockets.
RINGS, RING_BYTES = 60, 250_000


async def test_undecodable_messages_and_rejected_rollouts_are_evidence(
    gateway: str, season: Season, amber: Member
) -> None:
    foreign = [make_rollout(season, index=2**31 - 1) for _ in range(2)]
    async with node_socket(gateway, amber.token) as sender:
        await sender.send("no json")
        await sender.hear()
        await sender.ask(PublishRollouts(id="p", rollouts=foreign))
    await write_collected()
    await hub().flush()
    row = await Conduct.objects.aget(node=amber.node, season=season)
    assert (row.refused, row.copies, row.hurried, row.pending) == (3, 0, 0, True)


async def test_flooding_is_evidence(
    gateway: str, season: Season, amber: Member, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 1, 0.01
    monkeypatch.setattr(quota, "FLOOD_REFUSALS", 5)
    async with node_socket(gateway, amber.token) as socket:
        for number in range(5):
            await socket.send(RequestRound(id=f"{number}"))
        await socket.close_code()
    row = await evidence(amber, season)
    assert (row.hurried, row.floods) == (5, 1)


async def test_node_that_sends_requests_without_reading_replies_is_disconnected(
    gateway: str, season: Season, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_unread_limits(monkeypatch)
    async with node_socket(gateway, amber.token) as socket:
        await stop_reading(socket)
        await ask(socket, MAX_AHEAD + 2)
        async with asyncio.timeout(PATIENCE_S):
            await roster.roster().wait_until_empty()
        socket.connection.transport.abort()
    assert (await evidence(amber, season)).floods == 1
    assert (await read_counts())["connections"]["unread"] == 1


async def test_disconnection_is_counted_once_if_the_node_is_checked_again_while_it_leaves(
    gateway: str, season: Season, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_unread_limits(monkeypatch)
    async with node_socket(gateway, amber.token) as socket:
        await stop_reading(socket)
        async with stalled("nodes_node") as stall:  # The node's departure is written to this table.
            (connection,) = roster.roster()._open
            await ask(socket, MAX_AHEAD + 2)
            await stall.find_waiting()
            connection.read_ahead()
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            await roster.roster().wait_until_empty()
        socket.connection.transport.abort()
    assert (await evidence(amber, season)).floods == 1


async def test_stalled_node_is_dropped_once_without_evidence(
    gateway: str, season: Season, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_unread_limits(monkeypatch)
    async with node_socket(gateway, amber.token) as socket:
        await stop_reading(socket)
        async with stalled("nodes_node") as stall:  # The node's departure is written to this table.
            monkeypatch.setattr(roster, "STALLED_S", 0.1)
            await stall.find_waiting()
            roster.roster()._check_unread(now=monotonic())
        async with asyncio.timeout(PATIENCE_S):
            await roster.roster().wait_until_empty()
        socket.connection.transport.abort()
    await write_collected()
    assert (await read_counts())["connections"]["stalled"] == 1
    assert (await Node.objects.aget(pk=amber.node.pk)).left_at is not None
    assert not await Conduct.objects.filter(node=amber.node).aexists()


async def test_slow_node_gets_all_replies_in_order(
    gateway: str, season: Season, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_unread_limits(monkeypatch)
    async with node_socket(gateway, amber.token) as socket:
        await stop_reading(socket)
        await ask(socket, MAX_AHEAD)
        (connection,) = roster.roster()._open
        async with asyncio.timeout(PATIENCE_S):
            while len(connection._inbox._ahead) < MAX_AHEAD - 1:  # type: ignore[attr-defined]  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)
        socket.connection.transport.resume_reading()
        replies = [await hear_reply(socket) for _ in range(MAX_AHEAD)]
    assert replies == [f"{number}" for number in range(MAX_AHEAD)]
    assert not await Conduct.objects.filter(node=amber.node).aexists()


def shorten_unread_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "CHECK_S", 0.01)
    monkeypatch.setattr(roster, "UNREAD_S", 0.05)


async def evidence(member: Member, season: Season) -> Conduct:
    await write_collected()
    await hub().flush()
    return await Conduct.objects.aget(node=member.node, season=season)


async def stop_reading(socket: NodeSocket) -> None:
    """Stop reading, and ring doorbells until all buffers are full."""
    socket.connection.transport.pause_reading()
    for number in range(RINGS):
        await sync_to_async(bus.ring)(bus.NODES, f"{number}:" + "x" * RING_BYTES)
    (connection,) = roster.roster()._open
    async with asyncio.timeout(PATIENCE_S):
        while not connection.sending_since:  # noqa: ASYNC110 - no event for it
            await asyncio.sleep(0.01)


async def ask(socket: NodeSocket, times: int) -> None:
    for number in range(times):
        await socket.send(RequestRound(id=f"{number}"))


async def hear_reply(socket: NodeSocket) -> str | None:
    """Return the request id of the next reply."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            frame = await socket.connection.recv()
            if "reply_to" in str(frame):
                return decode_from_server(frame).reply_to
