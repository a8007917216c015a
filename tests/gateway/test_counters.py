"""Counters add up over processes, and counting never breaks what is counted."""

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from swarm_web import counters


async def test_counts_add_up_by_name_and_code() -> None:
    await counters.count("refused", "task.index")
    await counters.count("refused", "task.index", by=2)
    await counters.count("doorbells", "dropped")
    assert counters.read_all() == {"doorbells": {"dropped": 1}, "refused": {"task.index": 3}}


async def test_without_redis_nothing_is_counted_and_nothing_breaks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_redis() -> None:
        raise RedisConnectionError("refused")

    monkeypatch.setattr(counters, "async_redis", no_redis)
    await counters.count("refused", "task.index")
    assert "could not count refused task.index" in caplog.text
