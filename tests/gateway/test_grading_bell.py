"""GradingBell: many answers enqueue one grading task."""

import asyncio
import threading

import pytest
from kombu.exceptions import OperationalError

from swarm_web.gateway.grading_bell import GradingBell
from tests.sockets import PATIENCE_S


class Queue:
    """Counts calls of `enqueue`; the first calls raise `failures`, in order."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.calls = 0

    def enqueue(self) -> None:
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)


async def wait_for_calls() -> None:
    """Wait until all calls caused by rings have ended."""
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=PATIENCE_S)


async def test_many_rings_enqueue_grading_once() -> None:
    queue = Queue()
    bell = GradingBell(queue.enqueue, pause_s=0.01)
    for _ in range(100):
        bell.ring()
    await wait_for_calls()
    assert queue.calls == 1


async def test_later_ring_enqueues_grading_again() -> None:
    queue = Queue()
    bell = GradingBell(queue.enqueue, pause_s=0)
    for _ in range(2):
        bell.ring()
        await wait_for_calls()
    assert queue.calls == 2


async def test_ring_during_enqueueing_enqueues_grading_again() -> None:
    loop, started, may_finish = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    queue = Queue()

    def enqueue_slowly() -> None:
        queue.enqueue()
        loop.call_soon_threadsafe(started.set)
        assert may_finish.wait(PATIENCE_S)

    bell = GradingBell(enqueue_slowly, pause_s=0)
    bell.ring()
    async with asyncio.timeout(PATIENCE_S):
        await started.wait()
    bell.ring()
    may_finish.set()
    await wait_for_calls()
    assert queue.calls == 2


async def test_unavailable_broker_is_logged_and_the_next_ring_retries(
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
