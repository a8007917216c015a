"""Replica: rollouts published in one web process are drawn in the others, through Redis."""

import asyncio
from random import Random

import pytest

from judge.models import Season
from swarm_web.core.store import async_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.keys import season_key
from tests.relay.hubs import NOW, draw, join, make_hub, publish, running, until

# A random text, which no other rollout has. Equal completions would not be compared.
TEXT = f"{Random(0).getrandbits(4000):01000x}"

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def stream_length(season: Season) -> int:
    """Return the number of batches of all processes in Redis."""
    keys = await async_redis().keys(season_key(season.pk, "stream:*"))
    return sum([await async_redis().xlen(key) for key in keys])


async def test_rollouts_published_in_one_process_are_drawn_in_others(
    season: Season, amber: Node, bold: Node
) -> None:
    here, there, third = make_hub(), make_hub(), make_hub()
    async with running(here, there, third):
        pools = [(await join(hub, season.pk, bold)) for hub in (there, third)]
        pool, [one] = await join(here, season.pk, amber)
        publish(pool, one, "a", "b")
        here.wake()
        for far, [two] in pools:
            await until(lambda far=far: len(far.window) == 2)  # type: ignore[misc]
            assert draw(far, two) == ["amber/a", "amber/b"]


async def test_copy_in_another_process_does_not_replace_the_original(
    season: Season, amber: Node, bold: Node
) -> None:
    """The clock of the copy's process lags by more than the copy's delay."""
    here, there, third = make_hub(), make_hub(clock=lambda: NOW - 5), make_hub()
    async with running(here, there, third):
        pool, [one] = await join(here, season.pk, amber)
        far, [two] = await join(there, season.pk, bold)
        there._replicas[season.pk]._ahead_s = lambda: 5.0
        publish(pool, one, "original", text=TEXT, now=NOW - 0.2)
        publish(far, two, "copy", text=TEXT, now=NOW - 5.1)
        for hub in (there, here):
            await hub.flush()
        for hub in (there, here, third):
            await hub.open(season.pk)
            await hub.refresh()
            window = (await hub.open(season.pk)).window
            assert ("amber/original" in window, len(window)) == (True, 1)


async def test_new_process_fills_its_pool(season: Season, amber: Node, bold: Node) -> None:
    here = make_hub()
    pool, [one] = await join(here, season.pk, amber)
    for number in range(3):
        publish(pool, one, f"r{number}")
        await here.flush()
    await here.close()
    started = make_hub()
    async with running(started):
        pool, [two] = await join(started, season.pk, bold)
        assert draw(pool, two) == ["amber/r0", "amber/r1", "amber/r2"]


async def test_new_process_reads_streams_longer_than_one_read(
    season: Season, amber: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_web.relay.replica._READ_BATCHES", 2)
    here, started = make_hub(), make_hub()
    async with running(here, started):
        pool, [one] = await join(here, season.pk, amber)
        for number in range(5):
            publish(pool, one, f"r{number}")
            await here.flush()
        assert await stream_length(season) == 5
        assert len((await started.open(season.pk)).window) == 5


async def test_process_does_not_read_its_own_stream(season: Season, amber: Node) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        publish(pool, one, "a")
        await hub.flush()
        pool.window.forget_node(amber.pk)
        await hub.refresh()
        assert len(pool.window) == 0


async def test_batch_is_read_once(season: Season, amber: Node) -> None:
    here, there = make_hub(), make_hub()
    async with running(here, there):
        far = await there.open(season.pk)
        pool, [one] = await join(here, season.pk, amber)
        publish(pool, one, "a")
        await here.flush()
        await there.refresh()
        assert len(far.window) == 1
        far.window.forget_node(amber.pk)
        await there.refresh()
        assert len(far.window) == 0


async def test_stream_is_bounded_by_bytes_as_a_pool(season: Season, amber: Node) -> None:
    here, started = make_hub(body_bytes=4000), make_hub()
    async with running(here, started):
        pool, [one] = await join(here, season.pk, amber)
        for number in range(20):
            publish(pool, one, f"r{number}", text="x" * 800)
            await here.flush()
        assert 2 <= await stream_length(season) <= 4
        window = (await started.open(season.pk)).window
        assert "amber/r19" in window
        assert "amber/r0" not in window


async def test_stream_is_bounded_by_rollouts_as_a_pool(season: Season, amber: Node) -> None:
    here, started = make_hub(size=5), make_hub()
    async with running(here, started):
        pool, [one] = await join(here, season.pk, amber)
        for number in range(20):
            publish(pool, one, f"r{number}", f"s{number}", text="x" * 5000)
            await here.flush()
        assert await stream_length(season) == 3
        assert "amber/r17" in (await started.open(season.pk)).window


async def test_expired_rollouts_of_all_processes_are_removed_from_a_pool(
    season: Season, amber: Node, bold: Node
) -> None:
    """A window expires in the order of insertion, so rollouts must be added oldest first."""
    now = [NOW]
    hubs = [make_hub(clock=lambda: now[0], max_age_s=600) for _ in range(4)]
    started = hubs.pop()
    async with running(*hubs, started):
        for hub in hubs:
            pool, [one, two] = await join(hub, season.pk, amber, bold)
            publish(pool, one, f"old{id(hub)}", now=now[0])
        now[0] += 500
        for hub in hubs:
            publish(await hub.open(season.pk), two, f"young{id(hub)}", now=now[0])
            await hub.flush()
        window = (await started.open(season.pk)).window
        assert len(window) == 6
        window.expire(now=now[0] + 101)
        assert len(window) == 3


async def test_event_loop_is_not_blocked_while_a_process_reads_rollouts(
    season: Season, amber: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_web.relay.hub._YIELD_EVERY", 2)
    here, there = make_hub(), make_hub()
    async with running(here, there):
        far = await there.open(season.pk)
        pool, [one] = await join(here, season.pk, amber)
        publish(pool, one, *map(str, range(9)))
        await here.flush()
        reading, seen = asyncio.create_task(there.refresh()), set()
        while not reading.done():
            seen.add(len(far.window))
            await asyncio.sleep(0)
        assert seen >= {2, 4, 6, 8}


async def test_rollout_larger_than_the_bound_is_not_written(season: Season, amber: Node) -> None:
    hub = make_hub(body_bytes=100)
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        publish(pool, one, "a", text="x" * 800)
        await hub.flush()
    assert await stream_length(season) == 0


async def test_expired_batches_are_removed_from_the_stream(season: Season, amber: Node) -> None:
    now = [NOW]
    hub = make_hub(clock=lambda: now[0], max_age_s=600)
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        for number in range(3):
            publish(pool, one, f"r{number}", text="x" * 5000, now=now[0])
            await hub.flush()
            now[0] += 301
        assert await stream_length(season) == 2
    [key] = await async_redis().keys(season_key(season.pk, "stream:*"))
    assert 0 < await async_redis().ttl(key) <= 600


async def test_large_publication_is_written_in_several_batches(
    season: Season, amber: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_web.relay.replica._BATCH_BYTES", 1000)
    here, there = make_hub(), make_hub()
    async with running(here, there):
        pool, [one] = await join(here, season.pk, amber)
        publish(pool, one, *"abcdef", text="x" * 100)
        await here.flush()
        assert await stream_length(season) == 3
        assert len((await there.open(season.pk)).window) == 6


async def test_replication_continues_after_redis_lost_its_data(
    season: Season, amber: Node, bold: Node
) -> None:
    here, there = make_hub(), make_hub()
    async with running(here, there):
        far, [two] = await join(there, season.pk, bold)
        pool, [one] = await join(here, season.pk, amber)
        publish(pool, one, "a")
        await here.flush()
        await there.refresh()
        await async_redis().delete(*await async_redis().keys("relay:*"))
        publish(pool, one, "b")
        await here.flush()
        await there.refresh()
        assert draw(far, two) == ["amber/a", "amber/b"]


async def test_batches_missed_by_a_failed_read_are_read_the_next_time(
    season: Season, amber: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_web.relay.replica._READ_BATCHES", 1)
    here, there = make_hub(), make_hub()
    async with running(here, there):
        far = await there.open(season.pk)
        pool, [one] = await join(here, season.pk, amber)
        for name in "ab":
            publish(pool, one, name)
            await here.flush()
        store, calls = async_redis(), []
        read = store.xread

        async def fail_later(*given: object, **options: object) -> object:
            calls.append(given)
            if len(calls) == 2:
                raise ConnectionError
            return await read(*given, **options)  # type: ignore[arg-type]

        with monkeypatch.context() as patched:
            patched.setattr(store, "xread", fail_later)
            with pytest.raises(ConnectionError):
                await there.refresh()
        await there.refresh()
        assert len(far.window) == 2
