"""The pool is uniform, bounded, and never gives a node its own."""

from collections import Counter
from collections.abc import AsyncIterator, Collection
from random import Random

import pytest
import pytest_asyncio
from scipy.stats import chisquare

from swarm_web.relay.pool import (
    Bounds,
    Pool,
    declared_key,
    doubted_key,
    lapsed_key,
    node_key,
    pool_key,
)
from swarm_web.store import async_redis

SEASON = 1_000_000  # No season that another test makes.
WIDE = Bounds(size=1000, per_node=100, max_age_s=600)


@pytest_asyncio.fixture(autouse=True)
async def empty_redis() -> AsyncIterator[None]:
    await _forget()
    yield
    await _forget()
    await async_redis().aclose()


async def _forget() -> None:
    if keys := await async_redis().keys(f"relay:{SEASON}:*"):
        await async_redis().delete(*keys)


def make_pool(bounds: Bounds = WIDE) -> Pool:
    return Pool(async_redis(), season_id=SEASON, bounds=bounds)


async def fill(
    pool: Pool, node: int, ids: range, *, now: float = 0, declared: Collection[int] = ()
) -> int:
    return await pool.publish(
        node,
        {f"r{i}": f"{node}:{i}".encode() for i in ids},
        informative={f"r{i}" for i in declared},
        now=now,
    )


async def contents(pool: Pool, *, now: float = 0, excluding: int = 0) -> set[bytes]:
    drawn = await pool.sample(10_000, excluding=excluding, now=now, random=Random(0))
    return {pooled.blob for pooled in drawn}


async def preferred(
    pool: Pool, count: int, *, excluding: int = 1, now: float = 0, random: Random | None = None
) -> list[bytes]:
    drawn = await pool.sample(
        count, excluding=excluding, prefer="informative", now=now, random=random or Random(0)
    )
    return [pooled.blob for pooled in drawn]


async def test_what_was_published_can_be_drawn() -> None:
    pool = make_pool()
    assert await fill(pool, 1, range(3)) == 3
    [drawn] = await pool.sample(1, excluding=2, now=5, random=Random(0))
    assert (drawn.node_id, drawn.age_s) == (1, 5)
    assert drawn.blob in {b"1:0", b"1:1", b"1:2"}


async def test_an_empty_pool_gives_nothing() -> None:
    assert await make_pool().sample(4, excluding=1, now=0, random=Random(0)) == []


async def test_nobody_is_given_its_own() -> None:
    pool = make_pool()
    await fill(pool, 1, range(50))
    await fill(pool, 2, range(2))
    for seed in range(50):
        drawn = await pool.sample(8, excluding=1, now=0, random=Random(seed))
        assert {pooled.node_id for pooled in drawn} == {2}
        assert len(drawn) == 2


async def test_a_node_whose_number_begins_anothers_is_not_taken_for_it() -> None:
    pool = make_pool()
    await fill(pool, 12, range(3))
    assert len(await contents(pool, excluding=1)) == 3


async def test_no_rollout_comes_twice_in_a_sample() -> None:
    pool = make_pool()
    await fill(pool, 1, range(20))
    drawn = await pool.sample(20, excluding=2, now=0, random=Random(0))
    assert len({pooled.blob for pooled in drawn}) == 20


@pytest.mark.slow
async def test_every_rollout_of_others_is_as_likely_whoever_made_it() -> None:
    pool = make_pool()
    await fill(pool, 1, range(10))  # The one who asks.
    await fill(pool, 2, range(3))
    await fill(pool, 3, range(9))
    random = Random(20_250_911)
    drawn: Counter[bytes] = Counter()
    for _ in range(1500):
        drawn.update(p.blob for p in await pool.sample(4, excluding=1, now=0, random=random))
    assert len(drawn) == 12
    # Redis draws with a seed of its own: a limit that chance passes once in a million runs.
    assert chisquare(list(drawn.values())).pvalue > 1e-6


async def test_publishing_again_changes_nothing() -> None:
    pool = make_pool()
    await fill(pool, 1, range(3))
    assert await pool.publish(1, {"r0": b"changed"}, now=10) == 0
    assert await contents(pool) == {b"1:0", b"1:1", b"1:2"}


async def test_publishing_again_makes_a_rollout_no_younger() -> None:
    pool = make_pool()
    for now in (0, 300):
        await fill(pool, 1, range(1), now=now)
    assert await contents(pool, now=601) == set()


async def test_the_same_id_of_two_nodes_names_two_rollouts() -> None:
    pool = make_pool()
    await fill(pool, 1, range(1))
    await fill(pool, 2, range(1))
    assert await contents(pool) == {b"1:0", b"2:0"}


async def test_old_rollouts_are_given_to_nobody() -> None:
    pool = make_pool()
    await fill(pool, 1, range(1), now=0)
    await fill(pool, 1, range(1, 2), now=300)
    assert await contents(pool, now=601) == {b"1:1"}


async def test_a_node_over_its_share_loses_its_own_oldest() -> None:
    pool = make_pool(Bounds(size=100, per_node=3, max_age_s=600))
    await fill(pool, 2, range(2), now=0)
    for i in range(5):
        await fill(pool, 1, range(i, i + 1), now=i)
    assert await contents(pool, now=5) == {b"1:2", b"1:3", b"1:4", b"2:0", b"2:1"}


async def test_a_full_pool_loses_its_oldest() -> None:
    pool = make_pool(Bounds(size=4, per_node=100, max_age_s=600))
    await fill(pool, 1, range(3), now=0)
    await fill(pool, 2, range(4), now=1)
    assert await contents(pool, now=1) == {b"2:0", b"2:1", b"2:2", b"2:3"}


@pytest.mark.parametrize("bounds", [Bounds(4, 100, 600), Bounds(100, 4, 600)])
async def test_what_is_pushed_out_leaves_no_blob(bounds: Bounds) -> None:
    pool = make_pool(bounds)
    for i in range(20):
        await fill(pool, 1, range(i, i + 1), now=i)
    assert len(await async_redis().keys(f"relay:{SEASON}:blob:*")) == 4
    assert await async_redis().zcard(pool_key(SEASON)) == 4


async def test_an_ended_season_leaves_nothing() -> None:
    await fill(make_pool(), 1, range(3), declared=[0])
    keys = await async_redis().keys(f"relay:{SEASON}:*")
    assert len(keys) == 6
    assert all([0 < await async_redis().ttl(key) <= WIDE.max_age_s for key in keys])


async def test_seasons_do_not_mix() -> None:
    await fill(make_pool(), 1, range(3))
    other = Pool(async_redis(), season_id=SEASON + 1, bounds=WIDE)
    assert await other.sample(4, excluding=0, now=0, random=Random(0)) == []


# ---- declared rollouts


async def test_who_prefers_informative_rollouts_gets_the_declared_ones_first() -> None:
    pool = make_pool()
    await fill(pool, 2, range(30), declared=[4, 17])
    await fill(pool, 3, range(30), declared=[8])
    for seed in range(20):
        drawn = await preferred(pool, 8, random=Random(seed))
        assert set(drawn[:3]) == {b"2:4", b"2:17", b"3:8"}
        assert len(set(drawn)) == 8


async def test_who_prefers_informative_rollouts_is_never_given_its_own() -> None:
    pool = make_pool()
    await fill(pool, 1, range(50), declared=range(50))
    await fill(pool, 2, range(3), declared=[1])
    drawn = await preferred(pool, 8)
    assert drawn[0] == b"2:1"
    assert set(drawn) == {b"2:0", b"2:1", b"2:2"}


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 9])
async def test_declared_rollouts_are_drawn_uniformly_and_so_are_those_that_fill_up(
    count: int,
) -> None:
    pool = make_pool()
    await fill(pool, 1, range(10), declared=range(5))  # The one who asks.
    await fill(pool, 2, range(4), declared=[0])
    await fill(pool, 3, range(9), declared=[1, 2, 3, 4, 5])
    random = Random(20_250_911)
    drawn: Counter[bytes] = Counter()
    for _ in range(700):
        drawn.update(await preferred(pool, count, random=random))
    declared = [b"2:0", *(b"3:%d" % i for i in range(1, 6))]
    others = [b"2:1", b"2:2", b"2:3", b"3:0", b"3:6", b"3:7", b"3:8"]
    assert sum(drawn[member] for member in declared) == 700 * min(count, 6)
    # Redis draws with a seed of its own: a limit that chance passes once in a million runs.
    if count < 6:
        assert chisquare([drawn[member] for member in declared]).pvalue > 1e-6
    else:
        assert chisquare([drawn[member] for member in others]).pvalue > 1e-6


async def test_without_a_preference_declared_rollouts_are_as_likely_as_others() -> None:
    pool = make_pool()
    await fill(pool, 2, range(10), declared=[0])
    drawn = [await pool.sample(1, excluding=1, now=0, random=Random(seed)) for seed in range(100)]
    # A tenth is expected; Redis draws with a seed of its own.
    assert sum(first.blob == b"2:0" for [first] in drawn) < 50


async def test_an_id_that_was_not_published_declares_nothing() -> None:
    pool = make_pool()
    await fill(pool, 2, range(2), declared=[1, 99])
    assert await async_redis().zrange(declared_key(SEASON), 0, -1) == [b"2:r1"]


async def test_publishing_again_declares_nothing_later() -> None:
    pool = make_pool()
    await fill(pool, 2, range(2))
    await fill(pool, 2, range(2), declared=[0, 1])
    assert await async_redis().zcard(declared_key(SEASON)) == 0


@pytest.mark.parametrize("bounds", [Bounds(4, 100, 600), Bounds(100, 4, 600)])
async def test_what_is_pushed_out_is_no_longer_declared(bounds: Bounds) -> None:
    pool = make_pool(bounds)
    for i in range(20):
        await fill(pool, 1, range(i, i + 1), declared=[i], now=i)
    left = {b"1:r16", b"1:r17", b"1:r18", b"1:r19"}
    assert set(await async_redis().zrange(declared_key(SEASON), 0, -1)) == left


async def test_old_rollouts_are_no_longer_declared() -> None:
    pool = make_pool()
    await fill(pool, 2, range(1), declared=[0], now=0)
    await fill(pool, 2, range(1, 2), declared=[1], now=300)
    assert await preferred(pool, 8, now=601) == [b"2:1"]
    assert await async_redis().zrange(declared_key(SEASON), 0, -1) == [b"2:r1"]


async def test_a_flood_of_declarations_is_bounded_like_a_flood_of_rollouts() -> None:
    pool = make_pool(Bounds(size=1000, per_node=5, max_age_s=600))
    await fill(pool, 3, range(2), declared=[0], now=0)
    for i in range(100):
        await fill(pool, 2, range(i, i + 1), declared=[i], now=i)
    assert await async_redis().zcard(declared_key(SEASON)) == 6
    assert b"3:0" in await preferred(pool, 6, now=100)


async def test_declarations_that_do_not_count_make_no_difference() -> None:
    pool = make_pool()
    await async_redis().sadd(lapsed_key(SEASON), 2)
    await fill(pool, 2, range(5), declared=range(5))
    await fill(pool, 3, range(2), declared=[1])
    drawn = await preferred(pool, 8)
    assert drawn[0] == b"3:1"
    assert len(drawn) == 7
    assert await async_redis().zcard(declared_key(SEASON)) == 1


async def test_a_member_that_leaves_the_pool_leaves_nothing_behind() -> None:
    pool = make_pool(Bounds(size=1000, per_node=2, max_age_s=600))
    await async_redis().sadd(lapsed_key(SEASON), 2)
    for node in (2, 3):
        for i in range(6):
            await fill(pool, node, range(i, i + 1), declared=[i], now=i)
    lies, truths = {b"2:r4", b"2:r5"}, {b"3:r4", b"3:r5"}
    left = {
        pool_key(SEASON): lies | truths,
        node_key(SEASON, 2): lies,
        node_key(SEASON, 3): truths,
        doubted_key(SEASON): lies,
        declared_key(SEASON): truths,
    }
    for key, members in left.items():
        assert set(await async_redis().zrange(key, 0, -1)) == members
    kept = set(await async_redis().keys(f"relay:{SEASON}:*"))
    blobs = {b"relay:%d:blob:%s" % (SEASON, member) for member in lies | truths}
    assert kept == {*blobs, *(key.encode() for key in (*left, lapsed_key(SEASON)))}
