"""Test the live board: one reading per watched view, and no `live` status for stale data."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import DEFAULT, Mock

import pytest
from asgiref.sync import sync_to_async
from django.db import InterfaceError
from django.utils import timezone
from websockets.asyncio.client import connect

from swarm_web.dashboard.live import board
from swarm_web.dashboard.live import socket as live_socket
from swarm_web.dashboard.live.board import LiveBoard, TooManyViewsError, live_board
from swarm_web.dashboard.live.views import LiveView, ViewKey, read_key, read_view
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.live.listening import browser_socket, close_round, open_round_for, receive
from tests.factories import make_season
from tests.sockets import PATIENCE_S, running_gateway

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]


@pytest.mark.slow
async def test_view_without_watchers_is_read_again_on_join() -> None:
    season = await sync_to_async(make_season)()
    nodes = await sync_to_async(judge_nodes)(season, count=2)
    await sync_to_async(open_round_for)(season, nodes[0])
    live, key = LiveBoard(), read_key({})
    live.leave(await live.join(key))
    await sync_to_async(close_round)()
    stream = await live.join(key)
    live.leave(stream)
    assert stream.view.order == (nodes[1].name, nodes[0].name)


async def test_all_views_have_the_same_state_in_every_language() -> None:
    await sync_to_async(make_season)()
    live = LiveBoard()
    keys = [read_key(params) for params in ({"view": "pill"}, {"view": "home"}, {"lang": "fa"})]
    streams = [await live.join(key) for key in keys]
    for stream in streams:
        live.leave(stream)
    assert len({stream.view.state for stream in streams}) == 1


async def test_concurrent_joins_share_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    await sync_to_async(make_season)()
    reading = Mock(wraps=read_view)
    monkeypatch.setattr(board, "read_view", reading)
    live, key = LiveBoard(), read_key({"view": "pill"})
    streams = await asyncio.gather(*(live.join(key) for _ in range(5)))
    for stream in streams:
        live.leave(stream)
    assert reading.call_count == len(set(streams)) == 1


async def test_readings_continue_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's InterfaceError, raised for a lost connection, is not a DatabaseError."""
    monkeypatch.setattr(board, "IDLE_S", 0.01)
    await sync_to_async(make_season)()
    async with browser_socket("?view=pill") as socket:
        await receive(socket)
        reading = Mock(side_effect=[InterfaceError, RuntimeError, *[DEFAULT] * 9], wraps=read_view)
        monkeypatch.setattr(board, "read_view", reading)
        while reading.call_count < 3:
            assert (await receive(socket))["type"] == "delta"


@pytest.mark.slow
async def test_socket_is_closed_while_the_view_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board, "IDLE_S", 0.01)
    monkeypatch.setattr(live_socket, "STALE_S", 1)
    await sync_to_async(make_season)()
    async with running_gateway() as url:
        headers = {"Origin": url.replace("ws://", "http://")}
        async with connect(f"{url}/ws/live/", additional_headers=headers) as watching:
            last = await receive(watching)
            monkeypatch.setattr(board, "read_view", Mock(side_effect=InterfaceError))
            await watching.wait_closed()
            assert watching.close_code == 4503
        resume = f"?resume={last['epoch']}:{last['seq']}"
        async with connect(f"{url}/ws/live/{resume}", additional_headers=headers) as back:
            await back.wait_closed()
            assert back.close_code == 4503


async def test_number_of_uncommon_views_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board, "MAX_UNCOMMON_VIEWS", 1)
    await sync_to_async(make_season)()
    async with running_gateway() as url:
        headers = {"Origin": url.replace("ws://", "http://")}
        async with connect(f"{url}/ws/live/?search=a", additional_headers=headers) as first:
            await receive(first)
            async with connect(f"{url}/ws/live/?search=b", additional_headers=headers) as second:
                await second.wait_closed()
                assert second.close_code == 4429
        async with connect(f"{url}/ws/live/?search=b", additional_headers=headers) as third:
            assert (await receive(third))["type"] == "snapshot"


@pytest.mark.parametrize("query", ["?view=home", "?view=pill", "?window=round", "?find=amber"])
async def test_common_views_are_not_limited(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "MAX_UNCOMMON_VIEWS", 0)
    await sync_to_async(make_season)()
    async with browser_socket(query) as socket:
        assert (await receive(socket))["type"] == "snapshot"


async def test_view_above_the_limit_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board, "MAX_UNCOMMON_VIEWS", 0)
    monkeypatch.setattr(board, "read_view", pytest.fail)
    with pytest.raises(TooManyViewsError):
        await LiveBoard().join(read_key({"after": "50"}))


HOME = read_key({"view": "home"})
UNCOMMON = [read_key({"search": word}) for word in "abcdefgh"]


@contextmanager
def note_readings(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Queue[ViewKey]]:
    """Replace readings by a queue of their views, in order."""
    loop, read = asyncio.get_running_loop(), asyncio.Queue[ViewKey]()

    def note(key: ViewKey) -> LiveView:
        loop.call_soon_threadsafe(read.put_nowait, key)
        return LiveView(timezone.now(), pill="")

    with monkeypatch.context() as patch:
        patch.setattr(board, "read_view", note)
        yield read


async def read_until_home(read: asyncio.Queue[ViewKey]) -> int:
    """Return how many uncommon views are read before the home page."""
    uncommon = 0
    async with asyncio.timeout(PATIENCE_S):
        while (await read.get()).is_uncommon:
            uncommon += 1
    return uncommon


async def test_many_uncommon_views_do_not_delay_the_home_page_on_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live = LiveBoard()
    with note_readings(monkeypatch) as read:
        joining = asyncio.gather(*(live.join(key) for key in [*UNCOMMON, HOME]))
        assert await read_until_home(read) <= 1
        for stream in await joining:
            live.leave(stream)


async def test_home_page_is_updated_before_uncommon_views(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board, "PAUSE_S", 0)
    live = LiveBoard()
    with note_readings(monkeypatch) as read:
        streams = [await live.join(key) for key in [*UNCOMMON, HOME]]
        seen: list[ViewKey] = []
        # Each view is read when it is joined, and again because of the new watcher.
        async with asyncio.timeout(PATIENCE_S):
            while any(seen.count(key) < 2 for key in [*UNCOMMON, HOME]):
                seen.append(await read.get())
        while not read.empty():
            read.get_nowait()
        live._hear("a ring")
        assert await read_until_home(read) <= 1
        for stream in streams:
            live.leave(stream)


async def test_board_is_not_watched_after_the_last_socket_closed() -> None:
    await sync_to_async(make_season)()
    async with browser_socket() as socket:
        await receive(socket)
    assert not live_board().is_watched
