"""Pulse: a web process writes its heartbeat while it can serve."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import OperationalError, connections
from django.utils import timezone

from swarm_web.asgi import application
from swarm_web.core import heartbeat
from swarm_web.core.store import async_redis
from swarm_web.gateway import pulse
from tests.processes import POLL_S
from tests.sockets import PATIENCE_S


@asynccontextmanager
async def running_application() -> AsyncIterator[None]:
    """Start and stop the application through the ASGI lifespan."""
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


async def wait_for_pulse() -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await sync_to_async(heartbeat.web_silence)() is None:  # noqa: ASYNC110  no event
            await asyncio.sleep(POLL_S)


@pytest.fixture(autouse=True)
def fast_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "PULSE_S", POLL_S)


@pytest_asyncio.fixture(autouse=True)
async def no_pulse_yet(tidy_stores: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    # Its threads are not asgiref's, so their connections would not be closed.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    await async_redis().delete(heartbeat._WEB_KEY)
    yield
    await async_redis().delete(heartbeat._WEB_KEY)


async def test_pulse_is_written_until_the_web_process_stops() -> None:
    async with running_application():
        await wait_for_pulse()
        await async_redis().delete(heartbeat._WEB_KEY)
        await wait_for_pulse()
    await async_redis().delete(heartbeat._WEB_KEY)
    assert await sync_to_async(heartbeat.web_silence)() is None


async def test_pulse_pauses_while_the_database_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempted = asyncio.Event()

    async def fail(**_: object) -> None:
        attempted.set()
        raise OperationalError("Postgres is away")

    async with running_application():
        with monkeypatch.context() as patched:
            patched.setattr(pulse, "_query_maintenance", fail)
            await attempted.wait()
            await async_redis().delete(heartbeat._WEB_KEY)
            attempted.clear()
            await attempted.wait()
            assert await sync_to_async(heartbeat.web_silence)() is None
        await wait_for_pulse()


async def test_database_check_succeeds_and_stamp_updates_the_heartbeat() -> None:
    await pulse._query_maintenance(now=timezone.now())
    await asyncio.wait_for(heartbeat.stamp_web(), timeout=PATIENCE_S)
    silence = await sync_to_async(heartbeat.web_silence)()
    assert silence is not None
    assert silence < timedelta(seconds=5)
