"""Values that many messages need are read once for all of them."""

import asyncio
import threading

from swarm_web.gateway.cached import Cached


class Source:
    """Counts its loads; `hold` keeps a load from ending."""

    def __init__(self) -> None:
        self.loads = 0
        self.hold = threading.Event()
        self.hold.set()
        self.loading = threading.Event()

    def load(self) -> int:
        self.loads += 1
        loaded = self.loads
        self.loading.set()
        assert self.hold.wait(timeout=10)
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
