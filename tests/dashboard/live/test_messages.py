"""Test snapshots and deltas that browsers receive over a real socket."""

import asyncio
import gzip
import json

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone, translation
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from judge.models import Round
from judge.services.oversight import quarantine_node
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.live.listening import (
    browser_socket,
    close_round,
    open_round_for,
    receive,
    receive_delta,
    receive_other_state,
)
from tests.factories import make_node, make_round, make_score, make_season, publish
from tests.sockets import PATIENCE_S, running_gateway

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]


async def test_browser_receives_a_snapshot_of_the_rows_on_the_page() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket() as socket:
        snapshot = await receive(socket)
    assert snapshot["type"] == "snapshot"
    assert snapshot["order"] == [node.name for node in nodes]
    assert '<data value="1.0">1.000</data>' in snapshot["rows"][nodes[0].name]
    assert "2 nodes connected" in snapshot["pill"]


@pytest.mark.slow
async def test_new_score_is_sent_as_a_delta() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    await sync_to_async(open_round_for)(season, nodes[0])
    async with browser_socket() as socket:
        snapshot = await receive(socket)
        await sync_to_async(close_round)()
        delta = await receive_delta(socket, "order")
        assert delta["state"] != snapshot["state"]
    assert delta["type"] == "delta"
    assert delta["seq"] > snapshot["seq"]
    assert nodes[0].name in delta["rows"]
    assert 'value="0.8888888888888888"' in delta["rows"][nodes[0].name]
    assert delta["order"] == [nodes[1].name, nodes[0].name]


async def test_quarantine_removes_the_row_and_changes_the_state() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket() as socket:
        snapshot = await receive(socket)
        await sync_to_async(quarantine_node)(
            nodes[0], reason="copies", actor=None, now=timezone.now()
        )
        delta = await receive_delta(socket, "order")
    assert delta["order"] == [nodes[1].name]
    assert delta["state"] != snapshot["state"]


async def test_snapshot_contains_unranked_and_base_rows() -> None:
    season = await sync_to_async(make_season)()
    judge_round = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    for name, arm in (("amber", "swarm"), ("base-tiny", "base")):
        node, _ = await sync_to_async(make_node)(name, arm=arm)
        await sync_to_async(make_score)(judge_round, node, correct=1, n=2)
    await sync_to_async(publish)(season)
    async with browser_socket() as socket:
        snapshot = await receive(socket)
    assert snapshot["order"] == ["amber", "base-tiny"]
    assert "not enough questions in this window yet" in snapshot["rows"]["amber"]
    assert 'class="untrained"' in snapshot["rows"]["base-tiny"]


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "http://["])
async def test_cross_origin_socket_is_rejected_with_403(origin: str) -> None:
    with pytest.raises(InvalidStatus) as refusal:
        async with browser_socket(origin=origin):
            pass
    assert refusal.value.response.status_code == 403


async def test_socket_with_an_unknown_window_is_closed() -> None:
    async with browser_socket("?window=decade") as socket:
        await socket.wait_closed()
        assert socket.close_code == 4400


@pytest.mark.slow
async def test_snapshot_of_a_board_page_contains_only_its_rows() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=52)
    async with browser_socket("?after=50") as socket:
        snapshot = await receive(socket)
    assert len(snapshot["order"]) == 2
    assert set(snapshot["rows"]) == set(snapshot["order"]) < {node.name for node in nodes}


async def test_snapshot_of_a_page_without_a_board_contains_only_the_pill() -> None:
    season = await sync_to_async(make_season)()
    await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket("?view=pill") as socket:
        snapshot = await receive(socket)
    assert "2 nodes connected" in snapshot["pill"]
    assert (snapshot["rows"], snapshot["regions"]) == ({}, {})


async def test_snapshot_of_the_home_page_contains_its_regions() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket("?view=home") as socket:
        snapshot = await receive(socket)
    assert snapshot["order"] == [node.name for node in nodes]
    assert {"home_facts", "home_moves", "home_feed", "waiting"} == set(snapshot["regions"])


async def test_state_changes_if_another_season_starts_without_a_round() -> None:
    await sync_to_async(make_season)("Autumn", cadence_seconds=0)
    async with browser_socket("?view=pill") as socket:
        snapshot = await receive(socket)
        await sync_to_async(make_season)("Winter", cadence_seconds=0)
        async with asyncio.timeout(PATIENCE_S):
            await receive_other_state(socket, snapshot["state"])


async def test_messages_are_in_the_language_of_the_page() -> None:
    await sync_to_async(make_season)()
    async with browser_socket("?view=pill&lang=fa") as socket:
        persian = await receive(socket)
    with translation.override("fa"):
        expected = translation.gettext("The next round is being prepared")
    assert expected in persian["pill"]


async def test_messages_are_compressed_on_request() -> None:
    await sync_to_async(make_season)()
    async with browser_socket("?packed=1") as socket:
        async with asyncio.timeout(PATIENCE_S):
            received = await socket.recv()
    assert isinstance(received, bytes)
    assert json.loads(gzip.decompress(received))["type"] == "snapshot"


@pytest.mark.slow
async def test_resumed_browser_receives_the_missed_deltas() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    await sync_to_async(open_round_for)(season, nodes[0])
    async with running_gateway() as url:
        headers = {"Origin": url.replace("ws://", "http://")}
        async with (
            connect(f"{url}/ws/live/", additional_headers=headers) as watching,
            connect(f"{url}/ws/live/", additional_headers=headers) as leaving,
        ):
            await receive(watching)
            last = await receive(leaving)
            await leaving.close()
            await sync_to_async(close_round)()
            missed = await receive_delta(watching, "order")
            resume = f"?resume={last['epoch']}:{last['seq']}"
            async with connect(f"{url}/ws/live/{resume}", additional_headers=headers) as back:
                assert (await receive(back))["type"] == "resumed"
                received = [await receive(back) for _ in range(last["seq"], missed["seq"])]
                assert received[0]["seq"] == last["seq"] + 1
                assert received[-1] == missed


async def test_resuming_with_the_epoch_of_another_process_gives_a_snapshot() -> None:
    await sync_to_async(make_season)()
    async with browser_socket("?resume=0123456789ab:3") as socket:
        assert (await receive(socket))["type"] == "snapshot"
