"""The sign of life that all web processes share."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest_asyncio

from swarm_web.core import heartbeat
from swarm_web.core.store import async_redis


@pytest_asyncio.fixture(autouse=True)
async def forget_web() -> AsyncIterator[None]:
    await async_redis().delete(heartbeat._WEB_KEY)
    yield
    await async_redis().delete(heartbeat._WEB_KEY)
    await async_redis().aclose()


async def test_nobody_knows_of_web_processes_that_never_served() -> None:
    assert heartbeat.web_silence() is None


async def test_the_silence_begins_with_the_last_sign_of_any_web_process() -> None:
    await heartbeat.stamp_web()
    silence = heartbeat.web_silence()
    assert silence is not None
    assert timedelta(0) <= silence < timedelta(seconds=2)


async def test_the_silence_is_measured_by_redis_alone() -> None:
    await heartbeat.stamp_web()
    await async_redis().pexpire(heartbeat._WEB_KEY, heartbeat._EXPIRY - timedelta(seconds=20))
    silence = heartbeat.web_silence()
    assert silence is not None
    assert timedelta(seconds=20) <= silence < timedelta(seconds=22)
