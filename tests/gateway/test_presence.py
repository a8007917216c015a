"""A node is present while its socket is open, its hello was accepted, and it may stay."""

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


async def test_a_node_is_connected_while_its_socket_is_open_and_gone_after(
    amber: Member,
) -> None:
    async with running_gateway() as url, node_socket(url, amber.token):
        assert (await Node.objects.aget(name="amber")).is_connected(now=timezone.now())
    assert not (await Node.objects.aget(name="amber")).is_connected(now=timezone.now())


async def test_a_socket_without_a_hello_is_not_present_and_is_closed(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HELLO_TIMEOUT_S", 0.05)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await socket.send(ASK)  # A message that is no hello changes nothing.
        assert await socket.close_code() == connection.NO_HELLO
    assert not await Node.objects.seen_recently(now=timezone.now()).aexists()


@pytest.mark.slow
async def test_a_socket_with_a_hello_stays_open(
    gateway: str, amber: Member, bold: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HELLO_TIMEOUT_S", 2)
    async with (
        node_socket(gateway, amber.token) as greeted,
        node_socket(gateway, bold.token, greet=False) as later,
    ):
        assert await later.close_code() == connection.NO_HELLO
        assert isinstance(await greeted.ask(ASK), RoundState)


async def test_a_hello_that_takes_long_to_answer_was_said_in_time(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HELLO_TIMEOUT_S", 0.3)
    async with (
        node_socket(gateway, amber.token, greet=False) as socket,
        stalled("nodes_node") as stall,
    ):
        await socket.send(make_hello())
        await stall.find_waiting()
        await asyncio.sleep(2 * connection.HELLO_TIMEOUT_S)
        await stall.end()
        assert isinstance(await socket.hear(), Welcome)


async def wait_for_touches(node: Node, *, count: int) -> None:
    """Wait until the node's presence was noted this many times."""
    touched = Node.objects.filter(pk=node.pk, last_seen__isnull=False)
    await touched.aupdate(last_seen=None)
    async with asyncio.timeout(PATIENCE_S):
        while count > 0:
            await asyncio.sleep(POLL_S)
            count -= await touched.aupdate(last_seen=None)


async def test_an_idle_node_is_touched_again_and_again(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.001)
    async with node_socket(gateway, amber.token):
        await wait_for_touches(amber.node, count=3)


async def test_a_database_that_is_away_for_a_touch_costs_no_connection(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.001)
    monkeypatch.setattr(roster, "RETRY_S", 0.001)
    async with node_socket(gateway, amber.token) as socket:
        async with stalled("nodes_node") as stall:
            await stall.cut_off(await stall.find_waiting())
        await wait_for_touches(amber.node, count=3)
        assert isinstance(await socket.ask(ASK), RoundState)


@pytest.mark.parametrize("change", [{"blocked": True}, {"token_hash": "another"}])
async def test_a_node_that_may_not_stay_is_shown_out_although_the_ring_was_lost(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.01)
    async with node_socket(gateway, amber.token) as socket:
        await Node.objects.filter(name="amber").aupdate(**change)
        refused = await socket.hear()
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.AUTH_INVALID
        assert await socket.close_code() == 4401
