"""Hub: collected changes are written to the stores exactly once."""

import asyncio
from typing import Any

import msgspec
import pytest
import redis.asyncio
from asgiref.sync import sync_to_async
from django.db import OperationalError

from judge.models import Season
from swarm_web.core import counters, write_behind
from swarm_web.core.store import async_redis
from swarm_web.nodes.models import Node
from swarm_web.relay import hub as hub_module
from swarm_web.relay.credits import Credits
from swarm_web.relay.keys import CREDITS, season_key
from swarm_web.relay.models import Contribution
from tests.factories import make_season
from tests.relay.hubs import draw, join, make_hub, publish, report, running
from tests.relay.outages import gated_redis

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def published_of(node: Node) -> int:
    row = await Contribution.objects.filter(node=node).afirst()
    return row.published if row else 0


async def read_credits() -> list[Credits]:
    packed: Any = await async_redis().lrange(CREDITS, 0, -1)
    return [msgspec.msgpack.decode(each, type=Credits) for each in packed]


async def read_given(season: Season, node: Node) -> int:
    return int(await async_redis().hget(season_key(season.pk, "given"), str(node.pk)) or 0)


# ---- writing


async def test_close_writes_all_collected_changes(season: Season, amber: Node, bold: Node) -> None:
    hub = make_hub()
    pool, [one, two] = await join(hub, season.pk, amber, bold)
    publish(pool, one, "a", "b")
    drawn = draw(pool, two)
    report(pool, two, "amber/a")
    hub.leave(pool, two)
    hub.wake()
    await hub.close()
    assert drawn == ["amber/a", "amber/b"]
    assert await published_of(amber) == 2
    assert (await Contribution.objects.aget(node=bold)).delivered == 2
    assert [each.pairs[-1] for each in await read_credits()] == [[1]]
    assert await read_given(season, amber) == 2
    other = make_hub()
    async with running(other):
        pool, [again] = await join(other, season.pk, bold)
        assert draw(pool, again) == []
        assert "amber/a" in again.delivered


async def test_changes_are_written_once(season: Season, amber: Node, bold: Node) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [one, two] = await join(hub, season.pk, amber, bold)
        publish(pool, one, "a")
        draw(pool, two)
        report(pool, two, "amber/a")
        for _ in range(3):
            await hub.flush()
    assert await published_of(amber) == 1
    assert (await read_given(season, amber), len(await read_credits())) == (1, 1)


async def test_changes_wait_and_credits_are_sent_while_postgres_is_down(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("away")

    hub = make_hub()
    async with running(hub):
        pool, [one, two] = await join(hub, season.pk, amber, bold)
        publish(pool, one, "a")
        draw(pool, two)
        report(pool, two, "amber/a", step=3)
        with monkeypatch.context() as patched:
            patched.setattr(hub_module, "fold_changes", fail)
            with pytest.raises(OperationalError):
                await hub.flush()
        assert len(await read_credits()) == 1
        publish(pool, one, "b")
        await hub.flush()
    assert await published_of(amber) == 2
    taker = await Contribution.objects.aget(node=bold)
    assert (taker.delivered, taker.step) == (1, 3)
    assert len(await read_credits()) == 1


async def test_draws_continue_and_unreplicated_rollouts_are_counted_without_redis(
    season: Season, amber: Node, bold: Node
) -> None:
    await async_redis().delete("counters")
    async with gated_redis() as (gate, client):
        hub = make_hub(client)
        async with running(hub):
            pool, [one, two] = await join(hub, season.pk, amber, bold)
            gate.shut()
            publish(pool, one, "a", "b")
            assert draw(pool, two) == ["amber/a", "amber/b"]
            with pytest.raises(write_behind.STORE_ERRORS):
                await hub.flush()
            publish(pool, one, "c")
            assert draw(pool, two) == ["amber/c"]
            gate.open()
            await hub.flush()
    await counters.pending_counts().flush()
    counted = await sync_to_async(counters.read_all)()
    assert counted["relay"] == {"not_replicated": 2}


async def test_changes_are_written_once_after_redis_is_back(
    season: Season, amber: Node, bold: Node
) -> None:
    async with gated_redis() as (gate, client):
        hub = make_hub(client)
        async with running(hub):
            pool, [one, two] = await join(hub, season.pk, amber, bold)
            publish(pool, one, "a", "b")
            await hub.flush()
            draw(pool, two)
            report(pool, two, "amber/b")
            gate.shut()
            hub.leave(pool, two)
            for _ in range(2):
                with pytest.raises(write_behind.STORE_ERRORS):
                    await hub.flush()
            gate.open()
            await hub.flush()
            await hub.flush()
    assert await read_given(season, amber) == 2
    [batch] = await read_credits()
    assert batch.pairs[-1] == [1]
    assert await async_redis().exists(season_key(season.pk, f"list:{bold.pk}"))


async def test_season_can_be_opened_during_a_flush(season: Season, amber: Node) -> None:
    hub = make_hub()
    other = await sync_to_async(make_season)()
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        publish(pool, one, "a")
        await asyncio.gather(hub.flush(), hub.open(other.pk))
    assert await published_of(amber) == 1


# ---- given lists


async def test_node_gets_no_rollout_twice_across_processes(
    season: Season, amber: Node, bold: Node
) -> None:
    here, there = make_hub(), make_hub()
    async with running(here, there):
        pool, [one, two] = await join(here, season.pk, amber, bold)
        publish(pool, one, "a", "b", "c")
        await here.flush()
        assert len(draw(pool, two, 2)) == 2
        here.leave(pool, two)
        await here.flush()
        pool, [two] = await join(there, season.pk, bold)
        assert len(draw(pool, two)) == 1
        there.leave(pool, two)
        await there.flush()
        pool, [two] = await join(here, season.pk, bold)
        assert draw(pool, two) == []


async def test_given_list_survives_a_rejoin_before_a_flush(
    season: Season, amber: Node, bold: Node
) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [one, two] = await join(hub, season.pk, amber, bold)
        publish(pool, one, "a")
        draw(pool, two)
        hub.leave(pool, two)
        _, [two] = await join(hub, season.pk, bold)
        assert draw(pool, two) == []
        report(pool, two, "amber/a")
        await hub.flush()
    assert len(await read_credits()) == 1


async def test_given_list_survives_a_rejoin_during_a_flush(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, began, resume = make_hub(), asyncio.Event(), asyncio.Event()
    write = redis.asyncio.client.Pipeline.execute

    async def write_slowly(*given: Any, **options: Any) -> Any:
        began.set()
        await resume.wait()
        return await write(*given, **options)

    async with running(hub):
        pool, [one, two] = await join(hub, season.pk, amber, bold)
        publish(pool, one, "a")
        assert draw(pool, two) == ["amber/a"]
        await hub.flush()
        hub.leave(pool, two)
        with monkeypatch.context() as patched:
            patched.setattr(redis.asyncio.client.Pipeline, "execute", write_slowly)
            writing = asyncio.create_task(hub.flush())
            await began.wait()
            assert draw(pool, await hub.join(pool, bold)) == []
            resume.set()
            await writing


async def test_closing_a_replaced_connection_keeps_the_newer_membership(
    season: Season, amber: Node, bold: Node
) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [one, old] = await join(hub, season.pk, amber, bold)
        hub.leave(pool, old)  # The newer connection replaces it.
        _, [new] = await join(hub, season.pk, bold)
        publish(pool, one, "a")
        draw(pool, new)
        hub.leave(pool, old)  # The older connection is closed.
        _, [known] = await join(hub, season.pk, bold)
        assert known is new
        assert draw(pool, known) == []


@pytest.mark.parametrize("packed", [b"", b"\xc1", b"\x01", b"\x92\x91\x91\xa1x\x90"])
async def test_invalid_given_list_is_replaced_by_an_empty_one(
    season: Season, bold: Node, packed: bytes
) -> None:
    await async_redis().set(season_key(season.pk, f"list:{bold.pk}"), packed)
    hub = make_hub()
    async with running(hub):
        _, [member] = await join(hub, season.pk, bold)
    assert not member.delivered


async def test_given_lists_are_separate_per_season(season: Season, amber: Node, bold: Node) -> None:
    other = await sync_to_async(make_season)()
    hub = make_hub()
    async with running(hub):
        for each in (season, other):
            pool, [one, two] = await join(hub, each.pk, amber, bold)
            publish(pool, one, "a")
            assert draw(pool, two) == ["amber/a"]
    assert await published_of(amber) == 1
    assert await Contribution.objects.filter(node=amber).acount() == 2
