"""Counters add up over processes, and counting never breaks what is counted."""

import pytest
from asgiref.sync import async_to_sync

from swarm_web import counters


async def test_counts_add_up_by_name_and_code() -> None:
    await counters.count("refused", "task.index")
    await counters.count("refused", "task.index", by=2)
    await counters.count("doorbells", "dropped")
    assert counters.read_all() == {"doorbells": {"dropped": 1}, "refused": {"task.index": 3}}


@pytest.mark.usefixtures("redis_away")
def test_without_redis_nothing_is_counted_and_nothing_breaks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async_to_sync(counters.count)("refused", "task.index")
    assert "could not count refused task.index" in caplog.text
