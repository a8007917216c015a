"""A node's connection: hello, doorbells, replacement, failures and shutdown."""

import asyncio
import contextlib
import json
import time
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.db import InternalError, OperationalError
from django.utils import timezone
from pytest_django import Settings
from redis.exceptions import ConnectionError as RedisConnectionError

from judge.models import Season
from judge.services.seasons import end_season
from swarm_protocol.codec import encode
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    PublishRollouts,
    Refused,
    RequestRound,
    RoundState,
    SeasonState,
    Welcome,
)
from swarm_web.core import bus
from swarm_web.core.store import async_redis
from swarm_web.gateway import answering
from swarm_web.gateway.connection import Connection
from swarm_web.gateway.roster import roster
from swarm_web.nodes.models import Node
from tests.factories import make_hello, make_rollout, make_round
from tests.gateway.conftest import Member
from tests.gateway.sessions import read_counts
from tests.gateway.stalling import stalled
from tests.sockets import PATIENCE_S, NodeSocket, node_socket, running_gateway

ASK = RequestRound(id="ask")
RING = RoundState(reply_to=None, round=None, now="2026-01-01T00:00:00+00:00")


# ---- hello and welcome


async def test_welcome_contains_the_season_and_the_round(
    gateway: str, season: Season, amber: Member
) -> None:
    judge_round = await sync_to_async(make_round)(season)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        welcome = await socket.ask(make_hello())
    assert isinstance(welcome, Welcome)
    assert welcome.node == "amber"
    assert welcome.season is not None
    assert welcome.season.name == season.name
    assert welcome.round is not None
    assert (welcome.round.number, welcome.round.questions) == (judge_round.number, 2)


async def test_welcome_contains_the_return_window(
    gateway: str, amber: Member, settings: Settings
) -> None:
    settings.GATEWAY_RETURN_WITHIN_S = 20.0
    async with node_socket(gateway, amber.token, greet=False) as socket:
        welcome = await socket.ask(make_hello())
    assert isinstance(welcome, Welcome)
    assert welcome.return_within == 20


async def test_welcome_contains_no_season_or_round_without_a_season(
    gateway: str, amber: Member
) -> None:
    async with node_socket(gateway, amber.token, greet=False) as socket:
        welcome = await socket.ask(make_hello())
    assert isinstance(welcome, Welcome)
    assert (welcome.season, welcome.round) == (None, None)


async def test_hello_updates_the_node(gateway: str, amber: Member) -> None:
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await socket.ask(make_hello(arm="isolated"))
    node = await Node.objects.aget(name="amber")
    assert (node.model, node.arm, node.parameters) == ("tiny", "isolated", 300_000)


async def test_first_message_other_than_hello_is_refused_without_disconnecting(
    gateway: str, amber: Member
) -> None:
    async with node_socket(gateway, amber.token, greet=False) as socket:
        refused = await socket.ask(ASK)
        assert isinstance(refused, Refused)
        assert (refused.code, refused.fatal) == (ErrorCode.PROTOCOL_HELLO, False)
        assert isinstance(await socket.ask(make_hello()), Welcome)


async def test_second_hello_is_refused_without_disconnecting(gateway: str, amber: Member) -> None:
    async with node_socket(gateway, amber.token) as socket:
        refused = await socket.ask(make_hello())
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.PROTOCOL_HELLO
        assert isinstance(await socket.ask(ASK), RoundState)


# ---- doorbells


async def test_doorbell_is_sent_to_every_greeted_node(
    gateway: str, amber: Member, bold: Member
) -> None:
    async with node_socket(gateway, amber.token) as one, node_socket(gateway, bold.token) as two:
        await sync_to_async(bus.ring_nodes)(RING)
        assert await one.hear() == RING
        assert await two.hear() == RING


async def test_doorbell_before_the_hello_is_not_sent(
    gateway: str, amber: Member, bold: Member
) -> None:
    async with (
        node_socket(gateway, amber.token, greet=False) as ungreeted,
        node_socket(gateway, bold.token) as greeted,
    ):
        await ungreeted.ask(ASK)  # Its connection is subscribed by now.
        await sync_to_async(bus.ring_nodes)(RING)
        assert await greeted.hear() == RING
        await ungreeted.send(make_hello())
        assert isinstance(await ungreeted.hear(), Welcome)
        later = msgspec.structs.replace(RING, now="2026-01-01T00:00:01+00:00")
        await sync_to_async(bus.ring_nodes)(later)
        assert await ungreeted.hear() == later


async def test_doorbell_during_the_hello_is_sent_after_the_welcome(
    gateway: str, season: Season, amber: Member, bold: Member
) -> None:
    async with (
        node_socket(gateway, bold.token) as greeted,
        node_socket(gateway, amber.token, greet=False) as joining,
        stalled("nodes_node") as stall,
    ):
        await joining.send(make_hello())
        await stall.find_waiting()
        await async_redis().publish(bus.NODES, encode(RING))
        assert await greeted.hear() == RING  # Passed to all connections of this process by now.
        await stall.end()
        assert isinstance(await joining.hear(), Welcome)
        assert await joining.hear() == RING


async def test_season_change_during_the_hello_is_sent_after_the_welcome(
    gateway: str, amber: Member, bold: Member
) -> None:
    async with (
        node_socket(gateway, bold.token) as greeted,
        node_socket(gateway, amber.token, greet=False) as joining,
    ):
        await joining.ask(ASK)  # Its connection is subscribed and its presence stored by now.
        async with stalled("nodes_node") as stall:
            await joining.send(make_hello())
            await stall.find_waiting()
            news = SeasonState(reply_to=None, season=None)
            await async_redis().publish(bus.NODES, encode(news))
            assert await greeted.hear() == news
            await stall.end()
            assert isinstance(await joining.hear(), Welcome)
            assert await joining.hear() == news


async def test_hello_can_be_repeated_after_a_failure(
    gateway: str, season: Season, amber: Member
) -> None:
    async with node_socket(gateway, amber.token, greet=False) as socket:
        async with stalled("judge_round") as stall:
            await socket.send(make_hello())
            await stall.terminate(await stall.find_waiting())
            refused = await socket.hear()
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.SERVER_BUSY
        assert isinstance(await socket.ask(make_hello()), Welcome)


async def test_rollouts_are_refused_immediately_after_the_season_ends(
    gateway: str, season: Season, amber: Member
) -> None:
    publish = PublishRollouts(id="publish", rollouts=[make_rollout(season)])
    async with node_socket(gateway, amber.token) as socket:
        await sync_to_async(end_season)(season, now=timezone.now())
        await socket.hear()
        refused = await socket.ask(publish)
    assert isinstance(refused, Refused)
    assert refused.code == ErrorCode.SEASON_NONE, refused


@pytest.mark.slow
async def test_slow_reader_loses_the_oldest_doorbells_and_they_are_counted(
    gateway: str, amber: Member, bold: Member
) -> None:
    rings = [f"{number}:" + "x" * 250_000 for number in range(150)]
    async with node_socket(gateway, amber.token) as slow, node_socket(gateway, bold.token) as fast:
        last = asyncio.create_task(receive_until(fast, rings[-1]))
        for ring in rings:
            await sync_to_async(bus.ring)(bus.NODES, ring)
        await last  # By now each doorbell for the slow node was sent, queued or dropped.
        received = await receive_until(slow, rings[-1])
        assert received == sorted(received, key=rings.index)
        assert isinstance(await slow.ask(ASK), RoundState)
        assert (await read_counts())["doorbells"]["dropped"] >= len(rings) - len(received) > 0


async def receive_until(socket: NodeSocket, last: str) -> list[str]:
    """Return all frames up to `last`."""
    received = [""]
    async with asyncio.timeout(PATIENCE_S):
        while received[-1] != last:
            received.append(str(await socket.connection.recv()))
    return received[1:]


# ---- one connection per node


async def test_second_connection_with_the_same_token_replaces_the_first(
    gateway: str, amber: Member
) -> None:
    async with node_socket(gateway, amber.token) as old, node_socket(gateway, amber.token) as new:
        refused = await old.hear()
        assert isinstance(refused, Refused)
        assert (refused.code, refused.fatal) == (ErrorCode.AUTH_SUPERSEDED, True)
        assert await old.close_code() == 4409
        assert isinstance(await new.ask(ASK), RoundState)
        assert (await read_counts())["refused"] == {"auth.superseded": 1}


async def test_node_stays_connected_when_a_replaced_connection_closes(amber: Member) -> None:
    async with (
        running_gateway() as url,
        node_socket(url, amber.token) as old,
        node_socket(url, amber.token) as new,
    ):
        await old.close_code()
        await new.ask(ASK)  # By now the older connection is closed.
        assert (await Node.objects.aget(name="amber")).is_connected(now=timezone.now())


async def test_newer_connection_in_another_process_replaces_the_local_one(
    gateway: str, amber: Member
) -> None:
    async with node_socket(gateway, amber.token) as old:
        later = time.time_ns() + 1
        await async_redis().publish(bus.ARRIVALS, json.dumps([[amber.node.pk, later]]))
        refused = await old.hear()
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.AUTH_SUPERSEDED


async def test_older_connection_in_another_process_does_not_replace_the_local_one(
    gateway: str, amber: Member
) -> None:
    async with node_socket(gateway, amber.token) as socket:
        await async_redis().publish(bus.ARRIVALS, json.dumps([[amber.node.pk, 1]]))
        await sync_to_async(bus.ring_nodes)(RING)
        assert await socket.hear() == RING


# ---- shutdown and failures


async def test_stopping_server_closes_with_1012_and_marks_its_nodes_as_gone(amber: Member) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with running_gateway() as url:
            socket = await stack.enter_async_context(node_socket(url, amber.token))
        assert await socket.close_code() == 1012
    assert not (await Node.objects.aget(name="amber")).is_connected(now=timezone.now())


async def test_node_that_is_dismissed_while_it_is_refused_for_good_is_closed_once(
    amber: Member,
) -> None:
    hello, sent = msgspec.structs.replace(make_hello(), protocol=0), list[str]()

    async def receive() -> Any:
        return {"type": "websocket.receive", "text": encode(hello)}

    async def send(event: Any) -> None:
        sent.append(event["type"])
        if event["type"] == "websocket.send":
            connection.dismiss(RefusedError(ErrorCode.SERVER_RESTART, "restart", retry_after=1))

    connection = Connection(amber.node, roster(), receive, send, suspend=lambda: 1.0)
    await connection._handle(await receive())
    assert sent == ["websocket.send", "websocket.close"]


@pytest.mark.parametrize(
    ("failure", "code", "retry_after", "logged"),
    [
        (ZeroDivisionError("a bug"), ErrorCode.SERVER_INTERNAL, None, "Traceback"),
        (
            OperationalError("Postgres is away"),
            ErrorCode.SERVER_BUSY,
            (4, 8),
            "a store is unavailable",
        ),
        (
            InternalError("Postgres is read-only"),
            ErrorCode.SERVER_BUSY,
            (4, 8),
            "a store is unavailable",
        ),
        (
            RedisConnectionError("Redis is away"),
            ErrorCode.SERVER_BUSY,
            (4, 8),
            "a store is unavailable",
        ),
    ],
    ids=["bug", "postgres", "read-only", "redis"],
)
async def test_handler_failure_is_refused_without_disconnecting(
    gateway: str,
    amber: Member,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    code: ErrorCode,
    retry_after: tuple[float, float] | None,
    logged: str,
) -> None:
    async def fail(*_: object) -> RoundState:
        raise failure

    failing: dict[type[msgspec.Struct], answering.Handler] = {RequestRound: fail}
    async with node_socket(gateway, amber.token) as socket:
        with monkeypatch.context() as patched:
            patched.setattr(answering, "HANDLERS", answering.HANDLERS | failing)
            refused = await socket.ask(ASK)
        assert isinstance(refused, Refused)
        assert refused.code == code
        if retry_after is None:
            assert refused.retry_after is None
        else:
            assert refused.retry_after is not None
            assert retry_after[0] <= refused.retry_after <= retry_after[1]
        assert str(failure) not in refused.message
        assert isinstance(await socket.ask(ASK), RoundState)
    assert logged in caplog.text
    assert (await read_counts())["refused"] == {code: 1}
