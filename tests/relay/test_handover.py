"""Handover: a node that changes between web processes gets no rollout twice."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from judge.models import Season
from swarm_web.core.store import async_redis
from swarm_web.nodes.models import Node
from swarm_web.relay import handover
from swarm_web.relay.hub import Hub
from swarm_web.relay.keys import season_key
from tests.relay.hubs import draw, join, make_hub, publish, report, running, until

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def test_node_that_just_left_gets_no_rollout_twice_in_another_process(
    season: Season, amber: Node, bold: Node
) -> None:
    here, there = make_hub(), make_hub()
    async with running(here, there):
        pool, [one, two] = await join(here, season.pk, amber, bold)
        publish(pool, one, "a", "b")
        await here.flush()
        assert draw(pool, two) == ["amber/a", "amber/b"]
        here.leave(pool, two)
        far, [two] = await join(there, season.pk, bold)
        assert len(far.window) == 2
        assert draw(far, two) == []


async def test_join_in_another_process_ends_the_earlier_membership(
    season: Season, amber: Node, bold: Node
) -> None:
    here, there = make_hub(), make_hub()
    async with running(here, there):
        pool, [one, old] = await join(here, season.pk, amber, bold)
        publish(pool, one, "a", "b")
        await here.flush()
        draw(pool, old)
        far, [new] = await join(there, season.pk, bold)
        assert draw(far, new) == []
        assert old.has_left
        report(far, new, "amber/a")
        _, [back] = await join(here, season.pk, bold)
        assert back is not old
        assert new.has_left
        report(pool, back, "amber/a", "amber/b")
        await here.flush()
        await there.flush()
    reported = [hub._tally.pairs for hub in (here, there)]
    assert not any(reported)


async def test_node_that_often_changes_processes_gets_each_rollout_once(
    season: Season, amber: Node, bold: Node
) -> None:
    hubs = [make_hub() for _ in range(3)]
    async with running(*hubs):
        pool, [one] = await join(hubs[0], season.pk, amber)
        publish(pool, one, *map(str, range(24)))
        await hubs[0].flush()
        for hub in hubs:
            await hub.open(season.pk)
        taken: list[str] = []
        for _ in range(6):
            parts = await asyncio.gather(*(join(hub, season.pk, bold) for hub in hubs))
            for pool, [member] in parts:
                if not member.has_left:
                    taken += draw(pool, member, 2)
        assert len(taken) >= 12
        assert len(set(taken)) == len(taken)


async def test_handover_from_a_killed_process_times_out(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "HANDOVER_S", 0.01)
    hub = make_hub()
    await async_redis().hset(season_key(season.pk, "holders"), str(bold.pk), "killed.7")
    async with running(hub):
        pool, [one, two] = await join(hub, season.pk, amber, bold)
        publish(pool, one, "a")
        assert draw(pool, two) == ["amber/a"]


async def test_late_handover_is_merged(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "HANDOVER_S", 0.01)
    here, there = make_hub(), make_hub()
    async with running(here, there):
        pool, [one, two] = await join(here, season.pk, amber, bold)
        publish(pool, one, "a")
        await here.flush()
        draw(pool, two)
        report(pool, two, "amber/a")
        resume = delay_writes(here, monkeypatch)
        far, [two] = await join(there, season.pk, bold)
        assert draw(far, two) == ["amber/a"]
        resume.set()
        await until(lambda: "amber/a" not in two.delivered._waiting)
        report(far, two, "amber/a")
        assert not there._tally.pairs


def delay_writes(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Delay a hub's writes of given lists until the returned event is set."""
    resume, write = asyncio.Event(), hub._members.write

    async def write_later() -> None:
        await resume.wait()
        await write()

    monkeypatch.setattr(hub._members, "write", write_later)
    return resume


# ---- in one process


@pytest.fixture
def slow_claims(monkeypatch: pytest.MonkeyPatch) -> Callable[[Hub], asyncio.Event]:
    """Return a function that delays a hub's claims until its returned event is set."""

    def slow_down(hub: Hub) -> asyncio.Event:
        resume, claim = asyncio.Event(), hub._members._claim

        async def claim_slowly(*given: Any) -> Any:
            reply = await claim(*given)
            await resume.wait()
            return reply

        monkeypatch.setattr(hub._members, "_claim", claim_slowly)
        return resume

    return slow_down


async def test_concurrent_joins_share_one_membership(
    season: Season, amber: Node, bold: Node, slow_claims: Callable[[Hub], asyncio.Event]
) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        publish(pool, one, "a", "b")
        resume = slow_claims(hub)
        first, second = (asyncio.create_task(hub.join(pool, bold)) for _ in range(2))
        await asyncio.sleep(0)
        resume.set()
        old = await first
        assert draw(pool, old, 1)
        hub.leave(pool, old)
        new = await second
        if new.has_left:
            new = await hub.join(pool, bold)
        assert len(draw(pool, new)) == 1
        hub.leave(pool, new)
        assert not hub._members.has_members(season.pk + 1)
        hub.leave(pool, one)
        assert not hub._members.has_members(season.pk)


async def test_handover_requested_during_a_join_follows_the_join(
    season: Season, amber: Node, bold: Node, slow_claims: Callable[[Hub], asyncio.Event]
) -> None:
    here, there = make_hub(), make_hub()
    async with running(here, there):
        pool, [one] = await join(here, season.pk, amber)
        publish(pool, one, "a")
        await here.flush()
        await there.open(season.pk)
        resume = slow_claims(here)
        joining = asyncio.create_task(hub_draw(here, season.pk, bold))
        await until(lambda: here._members._claiming)
        while not await async_redis().hexists(season_key(season.pk, "holders"), str(bold.pk)):
            await async_redis().ping()
        elsewhere = asyncio.create_task(hub_draw(there, season.pk, bold))
        await until(lambda: here._members._postponed)
        resume.set()
        assert sorted(await joining + await elsewhere) == ["amber/a"]


async def hub_draw(hub: Hub, season_id: int, node: Node) -> list[str]:
    """Join a pool and draw immediately, as a handler does."""
    pool, [member] = await join(hub, season_id, node)
    assert not member.has_left
    return draw(pool, member)


async def test_node_that_rejoins_before_its_list_is_written_stays_claimed(
    season: Season, bold: Node
) -> None:
    hub = make_hub()
    async with running(hub):
        pool, [two] = await join(hub, season.pk, bold)
        hub.leave(pool, two)
        _, [again] = await join(hub, season.pk, bold)
        await hub.flush()
        held = await async_redis().hget(season_key(season.pk, "holders"), str(bold.pk))
        assert held == again.tenure.encode()
        hub.leave(pool, again)
        await hub.flush()
        assert not await async_redis().hexists(season_key(season.pk, "holders"), str(bold.pk))


async def test_stopped_process_releases_its_claims(season: Season, bold: Node) -> None:
    hub = make_hub()
    pool, [two] = await join(hub, season.pk, bold)
    hub.leave(pool, two)
    await hub.close()
    assert not await async_redis().exists(season_key(season.pk, "holders"))
