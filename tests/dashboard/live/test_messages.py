"""Browsers get a snapshot, then a delta when something changed, over a real socket."""

import asyncio
import gzip
import json
from urllib.parse import quote

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
    hear,
    hear_delta,
    hear_other_state,
    open_round_for,
)
from tests.factories import make_node, make_round, make_score, make_season, publish
from tests.sockets import PATIENCE_S, running_gateway

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]


async def test_a_browser_gets_a_snapshot_of_the_rows_on_the_page() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket() as socket:
        snapshot = await hear(socket)
    assert snapshot["type"] == "snapshot"
    assert snapshot["order"] == [node.name for node in nodes]
    assert '<data value="1.0">1.000</data>' in snapshot["rows"][nodes[0].name]
    assert "2 nodes connected" in snapshot["pill"]


@pytest.mark.slow
async def test_a_score_that_lands_reaches_the_browser() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    await sync_to_async(open_round_for)(season, nodes[0])
    async with browser_socket() as socket:
        snapshot = await hear(socket)
        await sync_to_async(close_round)()
        delta = await hear_delta(socket, "order")
        assert delta["state"] != snapshot["state"]
    assert delta["type"] == "delta"
    assert delta["seq"] > snapshot["seq"]
    assert nodes[0].name in delta["rows"]
    assert 'value="0.8888888888888888"' in delta["rows"][nodes[0].name]
    assert delta["order"] == [nodes[1].name, nodes[0].name]


async def test_a_quarantine_takes_the_row_away_and_rings_for_the_texts() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket() as socket:
        snapshot = await hear(socket)
        await sync_to_async(quarantine_node)(
            nodes[0], reason="copies", actor=None, now=timezone.now()
        )
        delta = await hear_delta(socket, "order")
    assert delta["order"] == [nodes[1].name]
    assert delta["state"] != snapshot["state"]


async def test_unranked_and_untrained_rows_are_live_too() -> None:
    season = await sync_to_async(make_season)()
    judge_round = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    for name, arm in (("amber", "swarm"), ("base-tiny", "base")):
        node, _ = await sync_to_async(make_node)(name, arm=arm)
        await sync_to_async(make_score)(judge_round, node, correct=1, n=2)
    await sync_to_async(publish)(season)
    async with browser_socket() as socket:
        snapshot = await hear(socket)
    assert snapshot["order"] == ["amber", "base-tiny"]
    assert "not enough questions in this window yet" in snapshot["rows"]["amber"]
    assert 'class="untrained"' in snapshot["rows"]["base-tiny"]


async def test_sequence_numbers_have_no_gap() -> None:
    await sync_to_async(make_season)()
    async with browser_socket() as socket:
        snapshot, delta = await hear(socket), await hear(socket)
    assert delta["seq"] == snapshot["seq"] + 1


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "http://["])
async def test_a_page_of_another_site_is_refused(origin: str) -> None:
    with pytest.raises(InvalidStatus) as refusal:
        async with browser_socket(origin=origin):
            pass
    assert refusal.value.response.status_code == 403


async def test_an_unknown_window_closes_the_socket() -> None:
    async with browser_socket("?window=decade") as socket:
        await socket.wait_closed()
        assert socket.close_code == 4400


@pytest.mark.slow
async def test_a_page_of_the_board_is_told_of_its_own_rows_only() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=52)
    async with browser_socket("?after=50") as socket:
        snapshot = await hear(socket)
    assert len(snapshot["order"]) == 2
    assert set(snapshot["rows"]) == set(snapshot["order"]) < {node.name for node in nodes}


async def test_a_page_without_a_board_hears_of_the_pill_only() -> None:
    season = await sync_to_async(make_season)()
    await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket("?view=pill") as socket:
        snapshot = await hear(socket)
    assert "2 nodes connected" in snapshot["pill"]
    assert (snapshot["rows"], snapshot["regions"]) == ({}, {})


async def test_the_home_page_hears_of_its_regions() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    async with browser_socket("?view=home") as socket:
        snapshot = await hear(socket)
    assert snapshot["order"] == [node.name for node in nodes]
    assert {"home_facts", "home_moves", "home_feed", "waiting"} == set(snapshot["regions"])


async def test_pages_ask_again_when_a_season_follows_another_without_a_round() -> None:
    await sync_to_async(make_season)("Autumn", cadence_seconds=0)
    async with browser_socket("?view=pill") as socket:
        snapshot = await hear(socket)
        await sync_to_async(make_season)("Winter", cadence_seconds=0)
        async with asyncio.timeout(PATIENCE_S):
            await hear_other_state(socket, snapshot["state"])


async def test_texts_come_in_the_language_of_the_page() -> None:
    await sync_to_async(make_season)()
    async with browser_socket("?view=pill&lang=fa") as socket:
        persian = await hear(socket)
    with translation.override("fa"):
        said = translation.gettext("The next round is being prepared")
    assert said in persian["pill"]


async def test_a_browser_that_can_unpack_gets_packed_messages() -> None:
    await sync_to_async(make_season)()
    async with browser_socket("?packed=1") as socket:
        async with asyncio.timeout(PATIENCE_S):
            heard = await socket.recv()
    assert isinstance(heard, bytes)
    assert json.loads(gzip.decompress(heard))["type"] == "snapshot"


@pytest.mark.slow
async def test_a_browser_that_comes_back_gets_what_it_missed() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    await sync_to_async(open_round_for)(season, nodes[0])
    async with running_gateway() as url:
        headers = {"Origin": url.replace("ws://", "http://")}
        async with (
            connect(f"{url}/ws/live/", additional_headers=headers) as stays,
            connect(f"{url}/ws/live/", additional_headers=headers) as goes,
        ):
            await hear(stays)
            last = await hear(goes)
            await goes.close()
            await sync_to_async(close_round)()
            missed = await hear_delta(stays, "order")
            resume = f"?resume={last['epoch']}:{last['seq']}"
            async with connect(f"{url}/ws/live/{resume}", additional_headers=headers) as back:
                assert (await hear(back))["type"] == "resumed"
                heard = [await hear(back) for _ in range(last["seq"], missed["seq"])]
                assert heard[0]["seq"] == last["seq"] + 1
                assert heard[-1] == missed


async def test_a_browser_of_another_process_gets_a_snapshot() -> None:
    await sync_to_async(make_season)()
    async with browser_socket("?resume=0123456789ab:3") as socket:
        assert (await hear(socket))["type"] == "snapshot"


@pytest.mark.parametrize("seq", ["9" * 4401, "x", "\u0663"], ids=["long", "word", "arabic"])
async def test_a_browser_that_resumes_after_no_number_gets_a_snapshot(seq: str) -> None:
    await sync_to_async(make_season)()
    async with running_gateway() as url:
        headers = {"Origin": url.replace("ws://", "http://")}
        async with connect(f"{url}/ws/live/?view=pill", additional_headers=headers) as first:
            epoch = (await hear(first))["epoch"]
            resume = f"?view=pill&resume={epoch}:{quote(seq)}"
            async with connect(f"{url}/ws/live/{resume}", additional_headers=headers) as back:
                assert (await hear(back))["type"] == "snapshot"
