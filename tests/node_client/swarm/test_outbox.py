"""Queued items are sent again, without blocking everything else."""

import asyncio
from collections.abc import Sequence
from typing import cast

from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import Outbox


class UndetectedLoss:
    """A connection that is lost and has not detected it yet."""

    async def wait_until_connected(self) -> None:
        return


async def test_undetected_loss_of_the_connection_does_not_starve_the_event_loop() -> None:
    others_ran = asyncio.Event()
    tries = 0

    async def send(items: Sequence[str]) -> None:
        nonlocal tries
        tries += 1
        assert tries < 1000, "the event loop was starved"
        if not others_ran.is_set():
            raise UnansweredError("the socket is closed")

    outbox: Outbox[str] = Outbox(
        client=cast(SwarmClient, UndetectedLoss()),
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
