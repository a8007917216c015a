"""Batcher: concurrent submissions share batches, and each caller gets its own result."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from channels.db import database_sync_to_async
from django.db import OperationalError
from django.utils import timezone

from judge.services.answers import Receipt, Submission
from swarm_protocol.codec import encode
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Refused, SubmitAnswers
from swarm_web.gateway.answering import answer
from swarm_web.gateway.batching import MOST_AT_ONCE, Batcher
from swarm_web.gateway.quota import Wait
from swarm_web.gateway.session import shared_reads
from tests.gateway.conftest import Member
from tests.gateway.sessions import answers_to, session_of
from tests.sockets import PATIENCE_S

GONE = OperationalError("gone")


class Store:
    """A fake store that blocks each call until `may_finish` is set.

    `calls` has the nodes of each call. `failures` has the exception to raise in the call of that
    number. Nodes in `refused` get a refusal, the others a receipt with their own number.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self.calls: list[list[int]] = []
        self.failures: dict[int, Exception] = {}
        self.refused: set[int] = set()
        self.writing = asyncio.Event()
        self.may_finish = threading.Event()

    def __call__(self, submissions: Sequence[Submission]) -> list[Receipt | RefusedError]:
        self.calls.append([submission.node_id for submission in submissions])
        self._loop.call_soon_threadsafe(self.writing.set)
        assert self.may_finish.wait(PATIENCE_S)
        if failure := self.failures.get(next(self._numbers)):
            raise failure
        return [self._outcome(submission.node_id) for submission in submissions]

    def _outcome(self, node_id: int) -> Receipt | RefusedError:
        if node_id in self.refused:
            return RefusedError(ErrorCode.ROUND_UNKNOWN, f"nothing for {node_id}")
        return Receipt(accepted=[str(node_id)])


class Harness:
    """A batcher with a fake store, and helpers to submit to it."""

    def __init__(self) -> None:
        self.store = Store()
        self.batcher = Batcher(database_sync_to_async(self.store))

    def submit(self, *nodes: int) -> list[asyncio.Task[Receipt]]:
        """Submit for each node."""
        return [asyncio.create_task(self.batcher.do(submission_of(node))) for node in nodes]

    async def submit_during_call(self, *nodes: int) -> list[asyncio.Task[Receipt]]:
        """Submit for node 1, and for the others while its call runs. Return all tasks."""
        tasks = self.submit(1)
        async with asyncio.timeout(PATIENCE_S):
            await self.store.writing.wait()
        tasks += self.submit(*nodes)
        await asyncio.sleep(0)  # They are in the queue now.
        return tasks

    async def finish(self, tasks: Sequence[asyncio.Task[Receipt]]) -> list[object]:
        """Unblock the store and return each outcome: accepted entries or the exception."""
        self.store.may_finish.set()
        async with asyncio.timeout(PATIENCE_S):
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        return [
            outcome.accepted if isinstance(outcome, Receipt) else outcome for outcome in outcomes
        ]


def submission_of(node_id: int) -> Submission:
    return Submission(node_id, 1, answers_to(["q"]), timezone.now())


async def test_single_submission_is_stored_in_its_own_call() -> None:
    harness = Harness()
    assert await harness.finish(harness.submit(1)) == [["1"]]
    assert harness.store.calls == [[1]]


async def test_submissions_during_a_call_are_stored_in_one_next_call() -> None:
    harness = Harness()
    await harness.finish(await harness.submit_during_call(2, 3, 4))
    assert harness.store.calls == [[1], [2, 3, 4]]


async def test_submission_to_an_idle_batcher_is_stored_in_its_own_call() -> None:
    harness = Harness()
    await harness.finish(harness.submit(1))
    assert await harness.finish(harness.submit(2)) == [["2"]]
    assert harness.store.calls == [[1], [2]]


async def test_batch_size_is_limited() -> None:
    harness = Harness()
    others = range(2, 2 * MOST_AT_ONCE + 3)
    outcomes = await harness.finish(await harness.submit_during_call(*others))
    assert [len(call) for call in harness.store.calls] == [1, MOST_AT_ONCE, MOST_AT_ONCE, 1]
    assert outcomes == [[str(node)] for node in [1, *others]]


async def test_each_caller_gets_its_own_receipt_or_refusal_of_a_batch() -> None:
    harness = Harness()
    harness.store.refused = {3}
    first, second, refusal, fourth = await harness.finish(await harness.submit_during_call(2, 3, 4))
    assert [first, second, fourth] == [["1"], ["2"], ["4"]]
    assert isinstance(refusal, RefusedError)
    assert refusal.message == "nothing for 3"


async def test_database_error_is_raised_for_all_callers_of_its_batch_only() -> None:
    harness = Harness()
    harness.store.failures = {2: GONE}
    assert await harness.finish(await harness.submit_during_call(2, 3)) == [["1"], GONE, GONE]


async def test_next_batch_is_stored_after_a_database_error() -> None:
    harness = Harness()
    harness.store.failures = {1: GONE}
    assert await harness.finish(await harness.submit_during_call(2, 3)) == [GONE, ["2"], ["3"]]
    assert await harness.finish(harness.submit(4)) == [["4"]]


@pytest.mark.parametrize("cancelled", [0, 1], ids=["running", "queued"])
async def test_submission_of_a_cancelled_caller_is_stored_with_the_others(
    cancelled: int,
) -> None:
    harness = Harness()
    tasks = await harness.submit_during_call(2, 3)
    tasks[cancelled].cancel()
    await asyncio.wait([tasks[cancelled]])
    outcomes = await harness.finish(tasks)
    assert isinstance(outcomes.pop(cancelled), asyncio.CancelledError)
    assert outcomes == [["2"] if cancelled == 0 else ["1"], ["3"]]
    assert harness.store.calls == [[1], [2, 3]]
    assert await harness.finish(harness.submit(4)) == [["4"]]


async def test_cancelled_caller_before_a_database_error_does_not_break_the_batcher() -> None:
    harness = Harness()
    harness.store.failures = {2: GONE}
    tasks = await harness.submit_during_call(2, 3)
    tasks[1].cancel()
    outcomes = await harness.finish(tasks)
    assert (outcomes[0], outcomes[2]) == (["1"], GONE)
    assert await harness.finish(harness.submit(4)) == [["4"]]


async def test_nodes_are_asked_to_retry_when_answers_cannot_be_stored(
    amber: Member, bold: Member
) -> None:
    harness = Harness()
    harness.store.failures = {1: GONE}
    harness.store.may_finish.set()
    shared = replace(shared_reads(), answers=harness.batcher)
    frame = encode(SubmitAnswers(id="s", round=1, answers=answers_to(["q"])))
    replies = await asyncio.gather(
        *(
            answer(session_of(member, shared=shared), frame, wait=Wait(0))
            for member in (amber, bold)
        )
    )
    assert len(harness.store.calls) == 1
    for reply in replies:
        assert isinstance(reply, Refused)
        assert (reply.code, reply.reply_to) == (ErrorCode.SERVER_BUSY, "s")
        assert reply.retry_after is not None
        assert 4 <= reply.retry_after <= 8


async def test_failing_item_of_a_batch_does_not_fail_the_others() -> None:
    async def halve(numbers: Sequence[int]) -> list[float]:
        return [1 / number for number in numbers]

    batcher: Batcher[int, float] = Batcher(halve)
    outcomes = await asyncio.gather(*map(batcher.do, (2, 0, 4)), return_exceptions=True)
    assert (outcomes[0], outcomes[2]) == (0.5, 0.25)
    assert isinstance(outcomes[1], ZeroDivisionError)
