"""What is owed is sent again, and never at the expense of everything else."""

import asyncio
from collections.abc import Sequence
from typing import cast

from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import Outbox


class LostUnnoticed:
    """A connection that is gone and has not noticed yet."""

    async def wait_until_connected(self) -> None:
        return


async def test_a_connection_that_is_gone_unnoticed_does_not_starve_the_event_loop() -> None:
    others_ran = asyncio.Event()
    tries = 0

    async def send(items: Sequence[str]) -> None:
        nonlocal tries
        tries += 1
        assert tries < 1000, "nobody else had a turn"
        if not others_ran.is_set():
            raise UnansweredError("the socket is closed")

    outbox: Outbox[str] = Outbox(
        client=cast(SwarmClient, LostUnnoticed()),
        send=send,
        on_refused=lambda refusal: None,
        capacity=8,
        batch=8,
    )
    outbox.put(["owed"])
    sending = asyncio.create_task(outbox.run())
    await asyncio.sleep(0)
    others_ran.set()
    async with asyncio.timeout(10):
        await outbox.empty.wait()
    sending.cancel()
