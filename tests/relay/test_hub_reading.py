"""Hub: reading the worker's findings and other processes' rollouts from Redis."""

import asyncio
from typing import Any

import pytest
from django.conf import settings

from judge.models import Season
from swarm_web.core.store import async_redis, sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay import hub as hub_module
from swarm_web.relay.check_queue import take_checks
from swarm_web.relay.keys import CHECKS, season_key
from swarm_web.relay.models import Contribution
from tests.relay.hubs import NOW, draw, join, make_hub, publish, running, until
from tests.relay.outages import gated_redis

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def published_of(node: Node) -> int:
    row = await Contribution.objects.filter(node=node).afirst()
    return row.published if row else 0


# ---- reading


async def test_pool_reads_lapsed_nodes_and_weights(season: Season, amber: Node) -> None:
    hub = make_hub()
    async with running(hub):
        pool = await hub.open(season.pk)
        await async_redis().sadd(season_key(season.pk, "lapsed"), amber.pk)
        await async_redis().hset(season_key(season.pk, "weights"), str(amber.pk), "0.25")
        await until(lambda: pool.doubted and pool.weights)
    assert pool.doubted == frozenset({amber.pk})
    assert dict(pool.weights) == {amber.pk: 0.25}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "READ_EVERY_S", 0.02)


async def write_invalid(season: Season, what: str) -> None:
    """Write an invalid value to Redis."""
    store = async_redis()
    key = season_key(season.pk, "stream:other")
    if what == "lapsed":
        await store.sadd(season_key(season.pk, "lapsed"), "x")
    elif what == "weight":
        await store.hset(season_key(season.pk, "weights"), "1", "heavy")
    elif what == "wrong-type":
        await store.set(season_key(season.pk, "lapsed"), "x")
    elif what == "process":
        await store.zadd(season_key(season.pk, "processes"), {b"\xff": NOW})
    else:
        await store.zadd(season_key(season.pk, "processes"), {"other": NOW})
        if what == "stream-of-wrong-type":
            await store.set(key, "x")
        elif what == "batch-without-entries":
            await store.xadd(key, {"other": "x"})
        else:
            await store.xadd(key, {"e": b"\xc1"})


INVALID = [
    *("lapsed", "weight", "wrong-type", "process"),
    *("stream-of-wrong-type", "batch-without-entries", "undecodable-batch"),
]


@pytest.mark.parametrize("what", INVALID)
async def test_hub_continues_to_read_after_an_invalid_value(
    season: Season, amber: Node, bold: Node, quick: None, what: str
) -> None:
    hub, other = make_hub(), make_hub()
    async with running(hub, other):
        pool, [two] = await join(hub, season.pk, bold)
        await write_invalid(season, what)
        await asyncio.sleep(0.05)
        await async_redis().delete(
            season_key(season.pk, "lapsed"),
            season_key(season.pk, "weights"),
            season_key(season.pk, "stream:other"),
        )
        await async_redis().zrem(season_key(season.pk, "processes"), b"\xff")
        far, [one] = await join(other, season.pk, amber)
        publish(far, one, "a")
        await other.flush()
        await until(lambda: "amber/a" in pool.window)
        assert draw(pool, two) == ["amber/a"]


@pytest.mark.parametrize("what", INVALID)
async def test_pool_opens_despite_an_invalid_value(
    season: Season, amber: Node, bold: Node, what: str
) -> None:
    await write_invalid(season, what)
    hub = make_hub()
    async with running(hub):
        pool, [one, two] = await join(hub, season.pk, amber, bold)
        publish(pool, one, "a")
        assert draw(pool, two) == ["amber/a"]


async def test_hub_continues_to_read_after_redis_is_back(
    season: Season, amber: Node, bold: Node, quick: None
) -> None:
    async with gated_redis() as (gate, client):
        hub, other = make_hub(client), make_hub()
        async with running(hub, other):
            pool, [two] = await join(hub, season.pk, bold)
            gate.shut()
            far, [one] = await join(other, season.pk, amber)
            publish(far, one, "a")
            await other.flush()
            gate.open()
            await until(lambda: "amber/a" in pool.window)
            assert draw(pool, two) == ["amber/a"]


async def test_pool_opened_without_redis_is_filled_after_redis_is_back(
    season: Season, amber: Node, bold: Node, quick: None
) -> None:
    async with gated_redis() as (gate, client):
        hub, other = make_hub(client), make_hub()
        async with running(hub, other):
            far, [one] = await join(other, season.pk, amber)
            publish(far, one, "a")
            await other.flush()
            gate.shut()
            pool, [_] = await join(hub, season.pk, bold)
            assert len(pool.window) == 0
            gate.open()
            await until(lambda: "amber/a" in pool.window)


async def test_pool_size_is_stored_with_an_expiry(season: Season, amber: Node) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        publish(pool, one, "a", "b")
        await hub.refresh()
    assert await async_redis().get(season_key(season.pk, "held")) == b"2"
    assert 0 < await async_redis().ttl(season_key(season.pk, "held")) <= 60


# ---- checks


@pytest.mark.parametrize(("per_minute", "offered"), [(0, 0), (1, 1), (60, 5), (120, 10)])
async def test_setting_limits_the_rollouts_offered_for_checking(
    season: Season, amber: Node, settings: Any, per_minute: int, offered: int
) -> None:
    settings.RELAY_DECLARED_CHECKS_PER_MINUTE = per_minute
    settings.RELAY_SPOT_CHECKS_PER_MINUTE = 0
    hub = make_hub()
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        names = [f"r{number}" for number in range(32)]
        publish(pool, one, *names, informative=names)
        await hub.refresh()
    assert await async_redis().llen(CHECKS) == offered


async def test_only_one_process_offers_rollouts_for_checking_per_turn(
    season: Season, amber: Node
) -> None:
    hubs = make_hub(), make_hub()
    async with running(*hubs):
        for hub in hubs:
            pool, [one] = await join(hub, season.pk, amber)
            publish(pool, one, "a", informative=["a"])
            await hub.refresh()
        assert await async_redis().llen(CHECKS) == 1
        await async_redis().delete(season_key(season.pk, "turn"))
        await hubs[1].refresh()
        assert await async_redis().llen(CHECKS) == 2


async def test_rollout_offered_by_processes_with_different_clocks_is_checked_once(
    season: Season, amber: Node
) -> None:
    hubs = make_hub(), make_hub(clock=lambda: NOW - 1)
    async with running(*hubs):
        pool, [one] = await join(hubs[0], season.pk, amber)
        publish(pool, one, "a", informative=["a"])
        await hubs[0].flush()
        for hub in hubs:
            await hub.open(season.pk)
            await async_redis().delete(season_key(season.pk, "turn"))
            await hub.refresh()
    assert await async_redis().llen(CHECKS) == 2
    assert len(take_checks(sync_redis(), 2, now=NOW, max_age_s=settings.RELAY_MAX_AGE_S)) == 1


# ---- closing pools


async def test_pool_without_members_and_rollouts_is_dropped(
    season: Season, amber: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "READ_EVERY_S", 0.001)
    now = NOW
    hub = make_hub(clock=lambda: now)
    pool, [one] = await join(hub, season.pk, amber)
    publish(pool, one, "a")
    async with running(hub):
        await hub.flush()
        hub.leave(pool, one)
        now += settings.RELAY_MAX_AGE_S + 1
        await until(lambda: season.pk not in hub._pools)
        assert await hub.open(season.pk) is not pool


async def test_pool_that_was_just_opened_is_not_dropped(season: Season, amber: Node) -> None:
    now = NOW
    hub = make_hub(clock=lambda: now)
    async with running(hub):
        await hub.open(season.pk)
        now += settings.RELAY_MAX_AGE_S + 1
        pool = await hub.open(season.pk)
        assert not hub._is_idle(pool)
