"""Cached: a value that many messages need is loaded once for all of them."""

import asyncio
import threading

import pytest
from django.db import OperationalError

from swarm_web.gateway import cached as cached_module
from swarm_web.gateway.cached import Cached


class Source:
    """A loader that counts its loads; clearing `hold` blocks a load, `is_down` makes it fail."""

    def __init__(self) -> None:
        self.loads = 0
        self.is_down = False
        self.hold = threading.Event()
        self.hold.set()
        self.loading = threading.Event()

    def load(self) -> int:
        self.loads += 1
        loaded = self.loads
        self.loading.set()
        assert self.hold.wait(timeout=10)
        if self.is_down:
            raise OperationalError("away")
        return loaded


async def test_concurrent_callers_share_one_load() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=60)
    assert await asyncio.gather(*(cached.get() for _ in range(5))) == [1, 1, 1, 1, 1]


async def test_expired_value_is_reloaded() -> None:
    cached = Cached(Source().load, max_age_s=0)
    assert [await cached.get(), await cached.get()] == [1, 2]


async def test_dropped_value_is_reloaded() -> None:
    cached = Cached(Source().load, max_age_s=60)
    await cached.get()
    cached.drop()
    assert await cached.get() == 2


async def test_value_dropped_during_its_load_is_not_cached() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=60)
    source.hold.clear()
    loading = asyncio.create_task(cached.get())
    assert await asyncio.to_thread(source.loading.wait, 10)
    cached.drop()
    source.hold.set()
    assert await loading == 1
    assert await cached.get() == 2


# ---- while the database is unavailable


async def test_concurrent_callers_share_one_failure() -> None:
    source = Source()
    source.is_down = True
    cached = Cached(source.load, max_age_s=60)
    outcomes = await asyncio.gather(*(cached.get() for _ in range(5)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [OperationalError] * 5
    assert source.loads == 1


async def test_expired_value_is_returned_while_the_database_is_down() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=0)
    assert await cached.get() == 1
    source.is_down = True
    cached._max_age_s = 60
    assert [await cached.get() for _ in range(5)] == [1] * 5
    assert source.loads == 2


async def test_dropped_value_is_not_returned_while_the_database_is_down() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=60)
    await cached.get()
    cached.drop()
    source.is_down = True
    with pytest.raises(OperationalError):
        await cached.get()
    source.is_down = False
    assert await cached.get() == 3


async def test_expired_value_is_returned_when_the_load_is_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cached_module, "PATIENCE_S", 0.01)
    source = Source()
    cached = Cached(source.load, max_age_s=0)
    assert await cached.get() == 1
    source.hold.clear()
    assert await asyncio.gather(*(cached.get() for _ in range(5))) == [1] * 5
    loading = cached._loading
    assert loading is not None
    source.hold.set()
    assert await loading == 2


async def test_programming_error_in_the_loader_is_raised() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=0)
    await cached.get()
    source.hold = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await cached.get()
