"""Work of many nodes is done in few batches, and each node gets its own result."""

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
from swarm_web.gateway.batching import MAX_BATCH, Batcher
from swarm_web.gateway.quota import Wait
from swarm_web.gateway.session import shared_state
from tests.gateway.conftest import Member
from tests.gateway.sessions import answers_to, session_of
from tests.sockets import PATIENCE_S

GONE = OperationalError("gone")


class Store:
    """Writes nothing, and holds the pen until it is told to go on.

    `calls` has the nodes of each call, and `failures` what is raised in the call of that number.
    Nodes in `refused` get a refusal, the others a receipt with their own number.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self.calls: list[list[int]] = []
        self.failures: dict[int, Exception] = {}
        self.refused: set[int] = set()
        self.writing = asyncio.Event()
        self.may_go_on = threading.Event()

    def __call__(self, submissions: Sequence[Submission]) -> list[Receipt | RefusedError]:
        self.calls.append([submission.node_id for submission in submissions])
        self._loop.call_soon_threadsafe(self.writing.set)
        assert self.may_go_on.wait(PATIENCE_S)
        if failure := self.failures.get(next(self._numbers)):
            raise failure
        return [self._outcome(submission.node_id) for submission in submissions]

    def _outcome(self, node_id: int) -> Receipt | RefusedError:
        if node_id in self.refused:
            return RefusedError(ErrorCode.ROUND_UNKNOWN, f"nothing for {node_id}")
        return Receipt(accepted=[str(node_id)])


class Counter:
    """A desk with nodes in front of it; node 1 came first, and its answers are being written."""

    def __init__(self) -> None:
        self.store = Store()
        self.desk = Batcher(database_sync_to_async(self.store))

    def come(self, *nodes: int) -> list[asyncio.Task[Receipt]]:
        """Let nodes hand in."""
        return [asyncio.create_task(self.desk.do(submission_of(node))) for node in nodes]

    async def queue_up(self, *nodes: int) -> list[asyncio.Task[Receipt]]:
        """Let node 1 hand in, and the others while it is served; return all their errands."""
        errands = self.come(1)
        async with asyncio.timeout(PATIENCE_S):
            await self.store.writing.wait()
        errands += self.come(*nodes)
        await asyncio.sleep(0)  # They stand in the queue now.
        return errands

    async def serve(self, errands: Sequence[asyncio.Task[Receipt]]) -> list[object]:
        """Write, and return what each was told: its receipt's entries, or what was raised."""
        self.store.may_go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            told = await asyncio.gather(*errands, return_exceptions=True)
        return [outcome.accepted if isinstance(outcome, Receipt) else outcome for outcome in told]


def submission_of(node_id: int) -> Submission:
    return Submission(node_id, 1, answers_to(["q"]), timezone.now())


async def test_a_lone_submission_is_stored_at_once() -> None:
    counter = Counter()
    assert await counter.serve(counter.come(1)) == [["1"]]
    assert counter.store.calls == [[1]]


async def test_what_comes_while_another_is_written_is_stored_in_one_call() -> None:
    counter = Counter()
    await counter.serve(await counter.queue_up(2, 3, 4))
    assert counter.store.calls == [[1], [2, 3, 4]]


async def test_a_submission_after_a_quiet_time_is_stored_like_the_first() -> None:
    counter = Counter()
    await counter.serve(counter.come(1))
    assert await counter.serve(counter.come(2)) == [["2"]]
    assert counter.store.calls == [[1], [2]]


async def test_no_call_stores_more_than_the_most_at_once() -> None:
    counter = Counter()
    others = range(2, 2 * MAX_BATCH + 3)
    told = await counter.serve(await counter.queue_up(*others))
    assert [len(call) for call in counter.store.calls] == [1, MAX_BATCH, MAX_BATCH, 1]
    assert told == [[str(node)] for node in [1, *others]]


async def test_each_caller_gets_its_own_receipt_or_refusal() -> None:
    counter = Counter()
    counter.store.refused = {3}
    first, second, refusal, fourth = await counter.serve(await counter.queue_up(2, 3, 4))
    assert [first, second, fourth] == [["1"], ["2"], ["4"]]
    assert isinstance(refusal, RefusedError)
    assert refusal.message == "nothing for 3"


async def test_a_database_error_reaches_every_caller_of_the_batch_and_no_other() -> None:
    counter = Counter()
    counter.store.failures = {2: GONE}
    assert await counter.serve(await counter.queue_up(2, 3)) == [["1"], GONE, GONE]


async def test_after_a_database_error_the_next_batch_is_stored() -> None:
    counter = Counter()
    counter.store.failures = {1: GONE}
    assert await counter.serve(await counter.queue_up(2, 3)) == [GONE, ["2"], ["3"]]
    assert await counter.serve(counter.come(4)) == [["4"]]


@pytest.mark.parametrize("quitter", [0, 1], ids=["while written", "in the queue"])
async def test_a_caller_that_hangs_up_harms_nobody_and_what_it_handed_in_is_stored(
    quitter: int,
) -> None:
    counter = Counter()
    errands = await counter.queue_up(2, 3)
    errands[quitter].cancel()
    await asyncio.wait([errands[quitter]])
    told = await counter.serve(errands)
    assert isinstance(told.pop(quitter), asyncio.CancelledError)
    assert told == [["2"] if quitter == 0 else ["1"], ["3"]]
    assert counter.store.calls == [[1], [2, 3]]
    assert await counter.serve(counter.come(4)) == [["4"]]


async def test_a_caller_that_hung_up_before_a_database_error_harms_nobody() -> None:
    counter = Counter()
    counter.store.failures = {2: GONE}
    errands = await counter.queue_up(2, 3)
    errands[1].cancel()
    told = await counter.serve(errands)
    assert (told[0], told[2]) == (["1"], GONE)
    assert await counter.serve(counter.come(4)) == [["4"]]


async def test_nodes_whose_answers_could_not_be_stored_are_asked_to_come_again(
    amber: Member, bold: Member
) -> None:
    counter = Counter()
    counter.store.failures = {1: GONE}
    counter.store.may_go_on.set()
    shared = replace(shared_state(), answers=counter.desk)
    frame = encode(SubmitAnswers(id="s", round=1, answers=answers_to(["q"])))
    replies = await asyncio.gather(
        *(
            answer(session_of(member, shared=shared), frame, wait=Wait(0))
            for member in (amber, bold)
        )
    )
    assert len(counter.store.calls) == 1
    for reply in replies:
        assert isinstance(reply, Refused)
        assert (reply.code, reply.reply_to) == (ErrorCode.SERVER_BUSY, "s")
        assert reply.retry_after is not None
        assert 4 <= reply.retry_after <= 8


async def test_an_item_that_cannot_be_done_fails_alone() -> None:
    async def halve(numbers: Sequence[int]) -> list[float]:
        return [1 / number for number in numbers]

    batcher: Batcher[int, float] = Batcher(halve)
    outcomes = await asyncio.gather(*map(batcher.do, (2, 0, 4)), return_exceptions=True)
    assert (outcomes[0], outcomes[2]) == (0.5, 0.25)
    assert isinstance(outcomes[1], ZeroDivisionError)
