"""CreditOutbox: numbered batches of credits are sent to the list that the worker reads."""

from collections import Counter
from typing import Any

import msgspec
import pytest
import redis.exceptions

from swarm_web.core import counters
from swarm_web.core.store import async_redis
from swarm_web.relay import credits as credits_module
from swarm_web.relay import tally as tally_module
from swarm_web.relay.credits import CreditOutbox, Credits
from swarm_web.relay.keys import CREDITS
from swarm_web.relay.tally import Lesson, Pair, Tally
from tests.relay.outages import gated_redis

pytestmark = pytest.mark.usefixtures("tidy_stores")


def tally_of(*pairs: Pair) -> Tally:
    return Tally(pairs=Counter(pairs))


def pair(minute: int) -> Pair:
    return Pair(season_id=1, minute=60 * minute, giver_id=2, taker_id=3)


async def read_batches() -> list[Credits]:
    packed: Any = await async_redis().lrange(CREDITS, 0, -1)
    return [msgspec.msgpack.decode(each, type=Credits) for each in packed]


async def test_batch_contains_the_number_of_used_rollouts_per_pair() -> None:
    await CreditOutbox(async_redis(), source="a").send(tally_of(pair(1), pair(2), pair(2)))
    [batch] = await read_batches()
    assert batch.count_pairs() == {pair(1): 1, pair(2): 2}


async def test_batches_of_a_process_are_numbered_consecutively() -> None:
    outbox = CreditOutbox(async_redis(), source="a")
    for minute in (1, 2):
        await outbox.send(tally_of(pair(minute)))
    assert [(batch.source, batch.number) for batch in await read_batches()] == [("a", 1), ("a", 2)]


async def test_empty_tally_is_not_sent() -> None:
    await CreditOutbox(async_redis(), source="a").send(Tally())
    assert await read_batches() == []


async def test_lessons_are_in_the_batch_of_their_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credits_module, "PAIRS_PER_BATCH", 2)
    tally = tally_of(*map(pair, range(5)))
    tally.lessons = [Lesson(1, 2, "a", 3, 60 * minute + 59) for minute in (4, 0, 2, 1)]
    await CreditOutbox(async_redis(), source="a").send(tally)
    minutes = [[each.at // 60 for each in batch.lessons] for batch in await read_batches()]
    assert minutes == [[0, 1], [2], [4]]


async def test_batch_whose_reply_was_lost_is_resent_with_its_number() -> None:
    async with gated_redis() as (gate, client):
        outbox = CreditOutbox(client, source="a")
        await outbox.send(tally_of(pair(0)))
        gate.lose_replies()
        with pytest.raises(redis.exceptions.ConnectionError):
            await outbox.send(tally_of(pair(1)))
        gate.open()
        await outbox.send(tally_of(pair(2)))
    sent = [(batch.number, [*batch.count_pairs()]) for batch in await read_batches()]
    assert sent == [(1, [pair(0)]), (2, [pair(1)]), (2, [pair(1)]), (3, [pair(2)])]


async def test_oldest_batches_are_dropped_and_counted_when_the_list_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await async_redis().delete("counters")
    monkeypatch.setattr(credits_module, "PAIRS_PER_BATCH", 100)
    outbox = CreditOutbox(async_redis(), source="a")
    await outbox.send(tally_of(*map(pair, range(1000))))
    held = int(await async_redis().memory_usage(CREDITS, samples=0) or 0)
    monkeypatch.setattr(credits_module, "MAX_WAITING_BYTES", held)
    await outbox.send(tally_of(*map(pair, range(1000, 1500))))
    assert int(await async_redis().memory_usage(CREDITS, samples=0) or 0) <= held
    numbers = [batch.number for batch in await read_batches()]
    assert 8 <= len(numbers) <= 10
    assert numbers == list(range(16 - len(numbers), 16))
    await counters.pending_counts().flush()
    dropped = await async_redis().hget("counters", "relay/credits_dropped")
    assert int(dropped or 0) == 15 - len(numbers)


async def test_pending_credits_are_bounded_while_redis_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally_module, "MAX_PAIRS", 3)
    monkeypatch.setattr(tally_module, "MAX_LESSONS", 2)
    tally = Tally()
    async with gated_redis() as (gate, client):
        outbox = CreditOutbox(client, source="a")
        gate.shut()
        for minute in range(6):
            tally.pairs[pair(minute)] += 1
            tally.lessons.append(Lesson(1, 2, "a", 3, 60 * minute))
            with pytest.raises(redis.exceptions.ConnectionError):
                await outbox.send(tally)
        gate.open()
        await outbox.send(tally)
    sealed, later = await read_batches()
    assert [*sealed.count_pairs()] == [pair(0)]
    assert [*later.count_pairs()] == [pair(3), pair(4), pair(5)]
    assert [lesson.at for lesson in later.lessons] == [240, 300]
