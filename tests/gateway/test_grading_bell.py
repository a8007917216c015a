"""Grades are asked for once for many answers."""

import asyncio
import threading

import pytest
from kombu.exceptions import OperationalError

from swarm_web.gateway.grading_bell import GradingBell
from tests.sockets import PATIENCE_S


class Queue:
    """Counts what is enqueued; the first calls raise `failures`, in order."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.calls = 0

    def enqueue(self) -> None:
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)


async def wait_for_calls() -> None:
    """Wait until all calls that were rung for have ended."""
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=PATIENCE_S)


async def test_many_rings_ask_for_grades_once() -> None:
    queue = Queue()
    bell = GradingBell(queue.enqueue, pause_s=0.01)
    for _ in range(100):
        bell.ring()
    await wait_for_calls()
    assert queue.calls == 1


async def test_a_later_ring_asks_for_grades_again() -> None:
    queue = Queue()
    bell = GradingBell(queue.enqueue, pause_s=0)
    for _ in range(2):
        bell.ring()
        await wait_for_calls()
    assert queue.calls == 2


async def test_a_ring_while_grades_are_being_asked_for_asks_again() -> None:
    loop, asked, may_go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    queue = Queue()

    def enqueue_slowly() -> None:
        queue.enqueue()
        loop.call_soon_threadsafe(asked.set)
        assert may_go_on.wait(PATIENCE_S)

    bell = GradingBell(enqueue_slowly, pause_s=0)
    bell.ring()
    async with asyncio.timeout(PATIENCE_S):
        await asked.wait()
    bell.ring()
    may_go_on.set()
    await wait_for_calls()
    assert queue.calls == 2


async def test_a_broker_that_is_away_is_logged_and_the_next_ring_asks_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = Queue(OperationalError("no broker"))
    bell = GradingBell(queue.enqueue, pause_s=0)
    bell.ring()
    await wait_for_calls()
    assert "could not ask for grading" in caplog.text
    bell.ring()
    await wait_for_calls()
    assert queue.calls == 2
