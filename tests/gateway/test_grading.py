"""Many answers enqueue one grading task."""

import asyncio
import threading
from unittest.mock import Mock

import pytest
from kombu.exceptions import OperationalError

from judge.tasks import grade_answers
from swarm_web.gateway import session
from swarm_web.gateway.session import shared_state
from tests.sockets import PATIENCE_S


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Records requests for grading instead of enqueueing them."""
    delay = Mock()
    monkeypatch.setattr(grade_answers, "delay", delay)
    monkeypatch.setattr(session, "GRADING_PAUSE_S", 0.01)
    return delay


async def wake(*, times: int = 1) -> None:
    """Request grading, and wait until the requests were passed on."""
    for _ in range(times):
        shared_state().grading.wake()
    await wait_for_calls()


async def wait_for_calls() -> None:
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=PATIENCE_S)


async def test_many_requests_enqueue_grading_once(enqueued: Mock) -> None:
    await wake(times=100)
    assert enqueued.call_count == 1


async def test_a_request_during_a_slow_enqueue_enqueues_again(enqueued: Mock) -> None:
    loop, started, may_finish = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def enqueue_slowly() -> None:
        loop.call_soon_threadsafe(started.set)
        assert may_finish.wait(PATIENCE_S)

    enqueued.side_effect = enqueue_slowly
    shared_state().grading.wake()
    async with asyncio.timeout(PATIENCE_S):
        await started.wait()
    shared_state().grading.wake()
    may_finish.set()
    await wait_for_calls()
    assert enqueued.call_count == 2


async def test_an_unavailable_broker_is_logged_and_the_next_request_enqueues(
    enqueued: Mock, caplog: pytest.LogCaptureFixture
) -> None:
    enqueued.side_effect = OperationalError("no broker")
    await wake()
    assert "could not enqueue grading" in caplog.text
    await wake()
    assert enqueued.call_count == 2
