"""Values that many messages need are read once for all of them."""

import asyncio
import threading

import pytest
from django.db import OperationalError

from swarm_web.gateway import cached as cached_module
from swarm_web.gateway.cached import Cached


class Source:
    """Counts its loads; `hold` keeps a load from ending, and `is_away` makes it fail."""

    def __init__(self) -> None:
        self.loads = 0
        self.is_away = False
        self.hold = threading.Event()
        self.hold.set()
        self.loading = threading.Event()

    def load(self) -> int:
        self.loads += 1
        loaded = self.loads
        self.loading.set()
        assert self.hold.wait(timeout=10)
        if self.is_away:
            raise OperationalError("away")
        return loaded


async def test_callers_at_once_share_one_load() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=60)
    assert await asyncio.gather(*(cached.get() for _ in range(5))) == [1, 1, 1, 1, 1]


async def test_a_value_that_is_too_old_is_loaded_again() -> None:
    cached = Cached(Source().load, max_age_s=0)
    assert [await cached.get(), await cached.get()] == [1, 2]


async def test_a_dropped_value_is_loaded_again() -> None:
    cached = Cached(Source().load, max_age_s=60)
    await cached.get()
    cached.drop()
    assert await cached.get() == 2


async def test_a_value_that_is_dropped_while_it_loads_is_not_kept() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=60)
    source.hold.clear()
    loading = asyncio.create_task(cached.get())
    assert await asyncio.to_thread(source.loading.wait, 10)
    cached.drop()
    source.hold.set()
    assert await loading == 1
    assert await cached.get() == 2


# ---- while the database is away


async def test_callers_at_once_share_one_failure() -> None:
    source = Source()
    source.is_away = True
    cached = Cached(source.load, max_age_s=60)
    outcomes = await asyncio.gather(*(cached.get() for _ in range(5)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [OperationalError] * 5
    assert source.loads == 1


async def test_the_last_value_counts_and_the_database_is_asked_now_and_then() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=0)
    assert await cached.get() == 1
    source.is_away = True
    cached._max_age_s = 60
    assert [await cached.get() for _ in range(5)] == [1] * 5
    assert source.loads == 2


async def test_a_dropped_value_does_not_count() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=60)
    await cached.get()
    cached.drop()
    source.is_away = True
    with pytest.raises(OperationalError):
        await cached.get()
    source.is_away = False
    assert await cached.get() == 3


async def test_nobody_waits_for_long_where_there_is_a_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cached_module, "RELOAD_TIMEOUT_S", 0.01)
    source = Source()
    cached = Cached(source.load, max_age_s=0)
    assert await cached.get() == 1
    source.hold.clear()
    assert await asyncio.gather(*(cached.get() for _ in range(5))) == [1] * 5
    loading = cached._loading
    assert loading is not None
    source.hold.set()
    assert await loading == 2


async def test_an_error_of_ours_is_no_outage() -> None:
    source = Source()
    cached = Cached(source.load, max_age_s=0)
    await cached.get()
    source.hold = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await cached.get()
