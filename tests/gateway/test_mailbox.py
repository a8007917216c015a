"""Doorbells for a socket that is slow to take them."""

import asyncio

from swarm_web.gateway.mailbox import Mailbox


async def test_doorbells_come_in_order() -> None:
    mailbox = Mailbox()
    mailbox.put("first")
    mailbox.put("second")
    assert [await mailbox.take(), await mailbox.take()] == ["first", "second"]


async def test_a_taker_waits_for_the_next_doorbell() -> None:
    mailbox = Mailbox()
    taking = asyncio.create_task(mailbox.take())
    await asyncio.sleep(0)  # The taker waits now.
    mailbox.put("late")
    assert await taking == "late"


async def test_a_full_mailbox_keeps_the_newest_and_counts_the_others() -> None:
    mailbox = Mailbox(size=2)
    for number in range(5):
        mailbox.put(str(number))
    assert [await mailbox.take(), await mailbox.take()] == ["3", "4"]
    assert mailbox.collect_dropped() == 3
    assert mailbox.collect_dropped() == 0
