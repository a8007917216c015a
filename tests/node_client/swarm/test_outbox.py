"""Queued items are sent again, without blocking everything else."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import Outbox


class Connected:
    """A connection that is open, or is lost and has not detected it yet."""

    async def wait_until_connected(self) -> None:
        return


def make_outbox(send: Callable[[Sequence[str]], Awaitable[None]], **options: Any) -> Outbox[str]:
    options = {"capacity": 8, "batch": 8, **options}
    return Outbox(
        client=cast(SwarmClient, Connected()), send=send, on_refused=lambda refusal: None, **options
    )


async def test_undetected_loss_of_the_connection_does_not_starve_the_event_loop() -> None:
    others_ran = asyncio.Event()
    tries = 0

    async def send(items: Sequence[str]) -> None:
        nonlocal tries
        tries += 1
        assert tries < 1000, "the event loop was starved"
        if not others_ran.is_set():
            raise UnansweredError("the socket is closed")

    outbox = make_outbox(send)
    outbox.put(["owed"])
    sending = asyncio.create_task(outbox.run())
    await asyncio.sleep(0)
    others_ran.set()
    async with asyncio.timeout(10):
        await outbox.empty.wait()
    sending.cancel()


@pytest.mark.parametrize("cleared", [False, True])
async def test_items_that_are_being_sent_are_not_dropped(*, cleared: bool) -> None:
    may_end = asyncio.Event()
    sent: list[str] = []
    removed: list[str] = []

    async def send(items: Sequence[str]) -> None:
        sent.extend(items)
        await may_end.wait()

    outbox = make_outbox(send, capacity=2, batch=2, on_removed=removed.extend)
    outbox.put(["one", "two"])
    sending = asyncio.create_task(outbox.run())
    await asyncio.sleep(0)
    assert sent == ["one", "two"]
    outbox.put(["three", "four", "five"])
    assert (outbox.dropped, removed) == (1, ["three"])
    if cleared:
        outbox.clear()
    may_end.set()
    async with asyncio.timeout(10):
        await outbox.empty.wait()
    sending.cancel()
    assert outbox.dropped == 1
    assert sorted(removed) == ["five", "four", "one", "three", "two"]
