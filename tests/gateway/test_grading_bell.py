"""Grades are asked for once for many answers."""

import asyncio
import threading

import pytest
from kombu.exceptions import OperationalError

from swarm_web.gateway.grading_bell import GradingBell
from tests.sockets import PATIENCE_S


class Queue:
    """What is enqueued, told to the event loop. The first calls raise `failures`, in order."""

    def __init__(self, *failures: Exception) -> None:
        self._loop = asyncio.get_running_loop()
        self._failures = list(failures)
        self.calls: asyncio.Queue[int] = asyncio.Queue()
        self.count = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def enqueue(self) -> None:
        self.count += 1
        self._loop.call_soon_threadsafe(self.calls.put_nowait, self.count)
        assert self.may_go_on.wait(PATIENCE_S)
        if self._failures:
            raise self._failures.pop(0)

    async def next_call(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            return await self.calls.get()


async def test_many_rings_ask_for_grades_once() -> None:
    queue = Queue()
    bell = GradingBell(queue.enqueue, pause_s=0.01)
    for _ in range(100):
        bell.ring()
    assert await queue.next_call() == 1
    bell.ring()
    assert await queue.next_call() == 2
    assert queue.count == 2


async def test_a_ring_while_grades_are_being_asked_for_asks_again() -> None:
    queue = Queue()
    bell = GradingBell(queue.enqueue, pause_s=0)
    queue.may_go_on.clear()
    bell.ring()
    await queue.next_call()
    bell.ring()
    assert await queue.next_call() == 2
    queue.may_go_on.set()


async def test_a_broker_that_is_away_is_logged_and_the_next_ring_asks_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = Queue(OperationalError("no broker"))
    bell = GradingBell(queue.enqueue, pause_s=0)
    for call in (1, 2):
        bell.ring()
        assert await queue.next_call() == call
    assert "could not ask for grading" in caplog.text
