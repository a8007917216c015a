"""Quotas of nodes and accounts over all their connections, and the handling of floods."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from judge.models import Season
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Refused, RoundState
from swarm_web.gateway import admission, quota
from swarm_web.gateway.quota import Allowances, Quota
from swarm_web.gateway.session import shared_state
from swarm_web.nodes.models import Node
from swarm_web.relay.hub import hub
from swarm_web.relay.models import Conduct
from tests.gateway.conftest import Member
from tests.gateway.test_auth import denied
from tests.gateway.test_connection import ASK
from tests.sockets import NodeSocket, node_socket


async def refusal(socket: NodeSocket) -> Refused:
    """Send a request and return its refusal."""
    refused = await socket.ask(ASK)
    assert isinstance(refused, Refused)
    return refused


async def test_allowance_is_not_reset_by_a_new_connection(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 3, 0.01
    async with node_socket(gateway, amber.token) as socket:
        await socket.ask(ASK)
    async with node_socket(gateway, amber.token) as socket:  # Its hello was the third message.
        assert (await refusal(socket)).code == ErrorCode.RATE_LIMITED


async def test_bytes_are_limited(gateway: str, amber: Member, settings: Any) -> None:
    settings.GATEWAY_BYTES_PER_SECOND, settings.GATEWAY_BYTES_BURST = 1000, 100_000
    async with node_socket(gateway, amber.token) as socket:
        await socket.send('{"type": "no type", "id": "large", "x": "' + "x" * 200_000 + '"}')
        assert (await socket.hear()).reply_to == "large"
        refused = await refusal(socket)
        assert refused.code == ErrorCode.RATE_LIMITED
        assert refused.retry_after is not None
        assert 90 < refused.retry_after < 210


async def test_characters_of_several_bytes_count_as_bytes(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.GATEWAY_BYTES_PER_SECOND, settings.GATEWAY_BYTES_BURST = 1000, 100_000
    async with node_socket(gateway, amber.token) as socket:
        await socket.send('{"type": "no type", "id": "large", "x": "' + "語" * 60_000 + '"}')
        assert (await socket.hear()).reply_to == "large"
        assert (await refusal(socket)).code == ErrorCode.RATE_LIMITED


async def test_nodes_of_an_account_share_one_allowance(
    gateway: str, amber: Member, bold: Member, settings: Any
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 4, 0.01
    settings.GATEWAY_OWNER_NODES = 1
    owner = await sync_to_async(User.objects.create_user)("owner")
    for member in (amber, bold):
        member.node.owner = owner
        await member.node.asave()
    async with node_socket(gateway, amber.token) as one, node_socket(gateway, bold.token) as two:
        await one.ask(ASK)
        await one.ask(ASK)  # With two hellos these are the four messages.
        assert (await refusal(two)).code == ErrorCode.RATE_LIMITED


async def test_rate_limit_of_a_node_does_not_affect_other_nodes(
    gateway: str, amber: Member, bold: Member, settings: Any
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 2, 0.01
    async with node_socket(gateway, amber.token) as one, node_socket(gateway, bold.token) as two:
        await one.ask(ASK)
        await refusal(one)
        assert isinstance(await two.ask(ASK), RoundState)


async def test_retry_times_of_refusals_are_jittered(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 1, 0.01
    async with node_socket(gateway, amber.token) as socket:
        waits = {(await refusal(socket)).retry_after for _ in range(5)}
    assert len(waits) == 5


async def test_flooding_node_is_disconnected_and_blocked_for_a_while(
    gateway: str, amber: Member, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 1, 0.01
    monkeypatch.setattr(quota, "FLOOD_REFUSALS", 5)
    async with node_socket(gateway, amber.token) as socket:
        for _ in range(5):
            await socket.send(ASK)
        received = [await socket.hear() for _ in range(6)]
        codes = [message.code for message in received if isinstance(message, Refused)]
        assert codes == [ErrorCode.RATE_LIMITED] * 5 + [ErrorCode.RATE_FLOOD]
        assert await socket.close_code() == 4429
    denial = await denied(f"{gateway}/ws/node/", {"Authorization": f"Bearer {amber.token}"})
    assert denial.response.status_code == 429
    assert 25 < int(denial.response.headers["Retry-After"]) <= 120


async def test_wrong_tokens_are_limited_per_address_and_known_tokens_are_accepted(
    gateway: str, amber: Member, bold: Member, settings: Any
) -> None:
    settings.GATEWAY_WRONG_TOKENS_PER_MINUTE = 3
    async with node_socket(gateway, amber.token):
        pass
    wrong = {"Authorization": "Bearer wrong"}
    statuses = [(await denied(f"{gateway}/ws/node/", wrong)).response.status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    async with node_socket(gateway, amber.token):
        pass


async def test_blocked_nodes_handshakes_do_not_count_as_wrong_tokens(
    gateway: str, amber: Member, bold: Member, settings: Any
) -> None:
    settings.GATEWAY_WRONG_TOKENS_PER_MINUTE = 1
    await Node.objects.filter(pk=amber.node.pk).aupdate(blocked=True)
    blocked = {"Authorization": f"Bearer {amber.token}"}
    for _ in range(2):
        assert (await denied(f"{gateway}/ws/node/", blocked)).response.status_code == 401
    async with node_socket(gateway, bold.token):
        pass


async def test_repeated_connections_of_a_token_are_limited(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_TOKEN_RATE", 0.001)
    monkeypatch.setattr(admission, "_TOKEN_BURST", 3)
    for _ in range(3):
        async with node_socket(gateway, amber.token, greet=False):
            pass
    denial = await denied(f"{gateway}/ws/node/", {"Authorization": f"Bearer {amber.token}"})
    assert denial.response.status_code == 429


async def test_concurrent_connections_of_a_token_are_limited(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All handshakes start before the token is looked up."""
    monkeypatch.setattr(admission, "_TOKEN_RATE", 0.001)
    monkeypatch.setattr(admission, "_TOKEN_BURST", 3)
    headers = {"Authorization": f"Bearer {amber.token}"}
    opening = [connect(f"{gateway}/ws/node/", additional_headers=headers) for _ in range(12)]
    opened = await asyncio.gather(*opening, return_exceptions=True)
    denials = [each for each in opened if isinstance(each, InvalidStatus)]
    assert {each.response.status_code for each in denials} == {429}
    assert len(denials) == 12 - 3
    for each in opened:
        if isinstance(each, ClientConnection):
            await each.close()


async def test_handshakes_beyond_the_queue_limit_get_503_with_growing_retry_after(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.GATEWAY_WAITING = 0
    settings.GATEWAY_RETURN_PER_SECOND = 1
    headers = {"Authorization": f"Bearer {amber.token}"}
    waits = []
    for _ in range(3):
        response = (await denied(f"{gateway}/ws/node/", headers)).response
        assert response.status_code == 503
        assert b"server.busy" in response.body
        waits.append(int(response.headers["Retry-After"]))
    assert waits == sorted(waits)
    assert waits[-1] >= 2


# ---- what counts as a flood


def sending(node: Node, *, times: int, settings: Any, messages: float) -> Quota:
    """Return the quota of a node after `times` messages, with a burst of `messages`."""
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = messages, 1e-9
    sender = Quota(node, Allowances())
    for _ in range(times):
        sender.take(1)
    return sender


def test_sender_floods_after_a_hundred_refusals(settings: Any) -> None:
    node = Node(pk=1)
    assert not sending(node, times=109, settings=settings, messages=10).is_flooding
    assert sending(node, times=110, settings=settings, messages=10).is_flooding


def test_accepted_messages_reduce_the_count_of_refusals(settings: Any) -> None:
    sender = sending(Node(pk=1), times=0, settings=settings, messages=10)
    sender.refused = 90
    for _ in range(10):
        sender.take(1)
    assert sender.refused == 50


# ---- while the database is unavailable


async def test_handshake_gets_503_when_the_token_cannot_be_looked_up(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: str) -> None:
        raise OperationalError("Postgres is away")

    monkeypatch.setattr(shared_state().tokens, "do", fail)
    headers = {"Authorization": f"Bearer {amber.token}"}
    response = (await denied(f"{gateway}/ws/node/", headers)).response
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert b"server.busy" in response.body


async def test_refusals_caused_by_other_nodes_of_the_account_are_not_evidence(
    gateway: str,
    season: Season,
    amber: Member,
    bold: Member,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.GATEWAY_BURST, settings.GATEWAY_MESSAGES_PER_SECOND = 5, 0.01
    settings.GATEWAY_OWNER_NODES = 1
    monkeypatch.setattr(quota, "FLOOD_REFUSALS", 3)
    owner = await sync_to_async(User.objects.create_user)("owner")
    for member in (amber, bold):
        member.node.owner = owner
        await member.node.asave()
    async with node_socket(gateway, amber.token) as one, node_socket(gateway, bold.token) as two:
        for _ in range(3):
            await one.ask(ASK)
        codes = [(await refusal(two)).code for _ in range(5)]
    assert codes == [ErrorCode.RATE_LIMITED] * 5
    await hub().flush()
    assert not await Conduct.objects.aexists()
