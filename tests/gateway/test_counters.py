"""Counters are summed in Redis and survive its outages."""

import pytest
import redis.exceptions
from asgiref.sync import async_to_sync

from swarm_web.core import counters


async def test_counts_are_summed_by_name_and_code() -> None:
    counters.count("refused", "task.index")
    await counters.pending_counts().flush()
    counters.count("refused", "task.index", by=2)
    counters.count("doorbells", "dropped")
    await counters.pending_counts().flush()
    assert counters.read_all() == {"doorbells": {"dropped": 1}, "refused": {"task.index": 3}}


async def count_without_redis() -> None:
    counters.count("refused", "task.index")
    for _ in range(2):  # The second flush fails only if the count is still pending.
        with pytest.raises(redis.exceptions.ConnectionError):
            await counters.pending_counts().flush()


@pytest.mark.usefixtures("redis_away")
def test_counts_stay_pending_while_redis_is_down() -> None:
    async_to_sync(count_without_redis)()
