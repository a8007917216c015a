"""Presence: a node is connected while its greeted socket is open and its token is valid."""

import asyncio
from typing import Any

import pytest
from django.utils import timezone

from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import (
    Refused,
    RequestRound,
    RoundState,
    Welcome,
)
from swarm_web.gateway import connection, roster
from swarm_web.nodes.models import Node
from tests.factories import make_hello
from tests.gateway.conftest import Member
from tests.gateway.stalling import stalled
from tests.processes import POLL_S
from tests.sockets import PATIENCE_S, node_socket, running_gateway

ASK = RequestRound(id="ask")
RING = RoundState(reply_to=None, round=None, now="2026-01-01T00:00:00+00:00")


async def test_node_is_connected_only_while_its_socket_is_open(
    amber: Member,
) -> None:
    async with running_gateway() as url, node_socket(url, amber.token):
        assert (await Node.objects.aget(name="amber")).is_connected(now=timezone.now())
    assert not (await Node.objects.aget(name="amber")).is_connected(now=timezone.now())


async def test_socket_without_a_hello_is_closed_and_not_present(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HELLO_S", 0.05)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await socket.send(ASK)  # Another message does not count as a hello.
        assert await socket.close_code() == connection.NO_HELLO
    assert not await Node.objects.seen_lately(now=timezone.now()).aexists()


@pytest.mark.slow
async def test_hello_timeout_does_not_close_a_greeted_socket(
    gateway: str, amber: Member, bold: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HELLO_S", 2)
    async with (
        node_socket(gateway, amber.token) as greeted,
        node_socket(gateway, bold.token, greet=False) as later,
    ):
        assert await later.close_code() == connection.NO_HELLO
        assert isinstance(await greeted.ask(ASK), RoundState)


async def test_hello_timeout_does_not_include_processing_of_the_hello(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HELLO_S", 0.3)
    async with (
        node_socket(gateway, amber.token, greet=False) as socket,
        stalled("nodes_node") as stall,
    ):
        await socket.send(make_hello())
        await stall.find_waiting()
        await asyncio.sleep(2 * connection.HELLO_S)
        await stall.end()
        assert isinstance(await socket.hear(), Welcome)


async def wait_for_touches(node: Node, *, count: int) -> None:
    """Wait until the node was touched `count` times."""
    touched = Node.objects.filter(pk=node.pk, last_seen__isnull=False)
    await touched.aupdate(last_seen=None)
    async with asyncio.timeout(PATIENCE_S):
        while count > 0:
            await asyncio.sleep(POLL_S)
            count -= await touched.aupdate(last_seen=None)


async def test_idle_node_is_touched_repeatedly(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.001)
    async with node_socket(gateway, amber.token):
        await wait_for_touches(amber.node, count=3)


async def test_database_failure_during_a_touch_does_not_disconnect(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.001)
    monkeypatch.setattr(roster, "RETRY_S", 0.001)
    async with node_socket(gateway, amber.token) as socket:
        async with stalled("nodes_node") as stall:
            await stall.terminate(await stall.find_waiting())
        await wait_for_touches(amber.node, count=3)
        assert isinstance(await socket.ask(ASK), RoundState)


@pytest.mark.parametrize("change", [{"blocked": True}, {"token_hash": "another"}])
async def test_node_with_an_invalid_token_is_disconnected_without_a_doorbell(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.01)
    async with node_socket(gateway, amber.token) as socket:
        await Node.objects.filter(name="amber").aupdate(**change)
        refused = await socket.hear()
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.AUTH_INVALID
        assert await socket.close_code() == 4401
