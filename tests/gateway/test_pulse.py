"""A web process says that it can serve, from its start to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import OperationalError, connections

from swarm_web.asgi import application
from swarm_web.core import heartbeat
from swarm_web.core.store import async_redis
from swarm_web.gateway import pulse
from tests.processes import POLL_S
from tests.sockets import PATIENCE_S


@asynccontextmanager
async def living() -> AsyncIterator[None]:
    """Start and end the application as a server does."""
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(
        application({"type": "lifespan", "asgi": {}}, to_app.get, from_app.put)
    )
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    yield
    await to_app.put({"type": "lifespan.shutdown"})
    assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
    await life


async def until_it_beats() -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await sync_to_async(heartbeat.web_silence)() is None:  # noqa: ASYNC110  asked of Redis
            await asyncio.sleep(POLL_S)


@pytest.fixture(autouse=True)
def fast_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "PULSE_S", POLL_S)


@pytest_asyncio.fixture(autouse=True)
async def no_pulse_yet(tidy_stores: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    # Its threads are not asgiref's, so nobody would close what they keep open.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    await async_redis().delete(heartbeat._WEB_KEY)
    yield
    await async_redis().delete(heartbeat._WEB_KEY)


async def test_a_web_process_beats_again_and_again_while_it_lives() -> None:
    async with living():
        await until_it_beats()
        await async_redis().delete(heartbeat._WEB_KEY)
        await until_it_beats()
    await async_redis().delete(heartbeat._WEB_KEY)
    assert await sync_to_async(heartbeat.web_silence)() is None


async def test_a_web_process_without_its_database_is_silent_until_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = asyncio.Event()

    async def fail() -> None:
        asked.set()
        raise OperationalError("Postgres is away")

    async with living():
        with monkeypatch.context() as patched:
            patched.setattr(pulse, "_query_maintenance", fail)
            await asked.wait()
            await async_redis().delete(heartbeat._WEB_KEY)
            asked.clear()
            await asked.wait()
            assert await sync_to_async(heartbeat.web_silence)() is None
        await until_it_beats()


async def test_a_query_tells_whether_the_database_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    await pulse._query_maintenance()
    await asyncio.wait_for(heartbeat.stamp_web(), timeout=PATIENCE_S)
    silence = await sync_to_async(heartbeat.web_silence)()
    assert silence is not None
    assert silence < timedelta(seconds=5)
