"""Test the subscription to doorbells."""

import asyncio

from swarm_web.core.bus import NODES, switchboard
from swarm_web.core.store import async_redis


async def test_doorbell_that_is_no_text_does_not_stop_later_doorbells() -> None:
    rung: asyncio.Queue[str] = asyncio.Queue()
    await switchboard().listen(NODES, rung.put_nowait)
    await async_redis().publish(NODES, b"\xff")
    await async_redis().publish(NODES, "later")
    assert await asyncio.wait_for(rung.get(), 5) == "later"
    await switchboard().close()
    await async_redis().aclose()
