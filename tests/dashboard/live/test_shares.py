"""Test the limit of uncommon views per network address."""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from websockets.asyncio.client import connect

from swarm_web.dashboard.live.board import MAX_UNCOMMON_VIEWS_EACH, TooManyViewsError, ViewShares
from swarm_web.dashboard.live.views import read_key
from tests.dashboard.live.listening import receive
from tests.factories import make_season
from tests.sockets import PATIENCE_S, running_gateway

UNCOMMON = [read_key({"search": f"word{number}"}) for number in range(MAX_UNCOMMON_VIEWS_EACH + 1)]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("tidy_stores")
async def test_number_of_uncommon_views_is_limited_per_address() -> None:
    await sync_to_async(make_season)()
    async with running_gateway() as url, AsyncExitStack() as open_sockets:

        async def watch(number: int, *, come_from: str) -> Any:
            socket = connect(
                f"{url}/ws/live/?search=word{number}",
                additional_headers={"Origin": url.replace("ws://", "http://")},
                local_addr=(come_from, 0),
            )
            return await open_sockets.enter_async_context(socket)

        for number in range(MAX_UNCOMMON_VIEWS_EACH):
            await receive(await watch(number, come_from="127.0.0.1"))
        refused = await watch(MAX_UNCOMMON_VIEWS_EACH, come_from="127.0.0.1")
        async with asyncio.timeout(PATIENCE_S):
            await refused.wait_closed()
        assert (refused.close_code, "your address" in refused.close_reason) == (4429, True)
        neighbour = await watch(MAX_UNCOMMON_VIEWS_EACH, come_from="127.0.0.2")
        assert (await receive(neighbour))["type"] == "snapshot"


def test_view_in_several_tabs_counts_once() -> None:
    shares = ViewShares()
    with ExitStack() as watched:
        for key in [*UNCOMMON[:-1], UNCOMMON[0]]:
            watched.enter_context(shares.hold("192.0.2.1", key))


def test_common_view_does_not_count() -> None:
    shares = ViewShares()
    with ExitStack() as watched:
        for key in [*UNCOMMON[:-1], read_key({"view": "home"})]:
            watched.enter_context(shares.hold("192.0.2.1", key))


def test_view_counts_until_its_last_tab_is_closed() -> None:
    shares = ViewShares()
    with ExitStack() as watched:
        for key in UNCOMMON[1:]:
            watched.enter_context(shares.hold("192.0.2.1", key))
        with shares.hold("192.0.2.1", UNCOMMON[1]):
            pass
        with pytest.raises(TooManyViewsError), shares.hold("192.0.2.1", UNCOMMON[0]):
            pass
    with shares.hold("192.0.2.1", UNCOMMON[0]):
        pass
