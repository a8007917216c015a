"""Test the pulse that all web processes share."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest_asyncio

from swarm_web.core import heartbeat
from swarm_web.core.store import async_redis


@pytest_asyncio.fixture(autouse=True)
async def no_pulse() -> AsyncIterator[None]:
    await async_redis().delete(heartbeat._WEB_KEY)
    yield
    await async_redis().delete(heartbeat._WEB_KEY)
    await async_redis().aclose()


async def test_silence_is_unknown_if_no_web_process_has_served() -> None:
    assert heartbeat.web_silence() is None


async def test_silence_starts_at_the_last_pulse() -> None:
    await heartbeat.stamp_web()
    silence = heartbeat.web_silence()
    assert silence is not None
    assert timedelta(0) <= silence < timedelta(seconds=2)


async def test_silence_is_measured_with_the_clock_of_redis() -> None:
    await heartbeat.stamp_web()
    await async_redis().pexpire(heartbeat._WEB_KEY, heartbeat._EXPIRY - timedelta(seconds=20))
    silence = heartbeat.web_silence()
    assert silence is not None
    assert timedelta(seconds=20) <= silence < timedelta(seconds=22)
