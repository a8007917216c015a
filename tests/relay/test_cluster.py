"""The relay on a real Valkey cluster of three masters."""

import msgspec
import pytest

from swarm_protocol.messages import Completion, Rollout, TaskSpec
from swarm_web.core.bus import switchboard
from swarm_web.core.store import async_redis, sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.check_queue import Check, set_lapsed, set_weights, take_checks
from swarm_web.relay.delivered import Delivered
from swarm_web.relay.handover import LeftState, Members
from swarm_web.relay.hub import Hub, read_bounds
from swarm_web.relay.intake import ArchiveSample, SampleLimits, offer_samples, take_samples
from swarm_web.relay.keys import CHECKS, season_key
from swarm_web.relay.likeness import digest
from swarm_web.relay.replica import Replica
from swarm_web.relay.selectors.pooled import delivered_to_others
from swarm_web.relay.window import Entry

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_cluster")]

NOW = 1_000_000.0
SEASONS = range(8)  # on all three servers


def replica(season: int, process: str) -> Replica:
    return Replica(
        async_redis(),
        season_id=season,
        process=process,
        bounds=read_bounds(),
        ahead_s=lambda: 0.0,
    )


def entry(process: str) -> Entry:
    return Entry(
        key=f"{process}/r1",
        node_id=1,
        party="node 1",
        dataset="gcd",
        informative=False,
        archived=False,
        at=NOW,
        body=b"body",
        digests=digest(task=b"task", completions=[process]),
    )


async def test_processes_read_each_others_entries() -> None:
    for season in SEASONS:
        for process in ("one", "two"):
            await replica(season, process).write([entry(process)], now=NOW)
        entries = await replica(season, "three").read(now=NOW)
        assert {each.key for each in entries} == {"one/r1", "two/r1"}


async def test_hub_writes_given_lists_and_counts_of_all_seasons() -> None:
    hub = Hub(async_redis(), read_bounds(), clock=lambda: NOW)
    hub._members._left = {(season, 1): LeftState("one.0", b"list") for season in SEASONS}
    hub._tally.deliveries.update({(season, 1): 2 for season in SEASONS})
    await hub._members.write()
    await hub._write_deliveries()
    for season in SEASONS:
        assert sync_redis().get(season_key(season, "list:1")) == b"list"
        assert delivered_to_others(1, season_id=season) == 2


async def test_given_list_is_handed_over_in_every_season() -> None:
    here, there = (Members(async_redis(), process=name) for name in ("here", "there"))
    node = Node(pk=1, name="amber")
    for members in (here, there):
        await members.listen()
    for season in SEASONS:
        old = await here.join(season, node)
        old.delivered.add("bold/a", Delivered(2, archived=False))
        new = await there.join(season, node)
        assert (old.has_left, "bold/a" in new.delivered) == (True, True)
    for members in (here, there):
        await members.close()
    await switchboard().close()


async def test_archive_samples_are_bounded() -> None:
    rollout = Rollout(
        id="r1",
        task=TaskSpec("gcd", {}, 1, 1, "v"),
        completions=[Completion("1", "stop")] * 2,
        model="m",
        step=1,
        tokenizer="t",
    )
    samples = [ArchiveSample(1, 1, NOW, rollout)] * 3
    accepted = await offer_samples(async_redis(), samples, limits=SampleLimits(site=2, node=2))
    assert accepted == len(take_samples(sync_redis(), limit=9)) == 2


def test_declared_rollout_is_checked_once() -> None:
    check = Check(season_id=1, node_id=1, key="one/r1", body=b"{}")
    set_lapsed(sync_redis(), 1, [1, 2])
    for expected in ([check], []):
        sync_redis().rpush(CHECKS, msgspec.msgpack.encode(check))
        assert take_checks(sync_redis(), 9, now=NOW, max_age_s=600) == expected


def test_weights_are_stored_per_season() -> None:
    for season in SEASONS:
        set_weights(sync_redis(), season, {1: 0.25})
        assert sync_redis().hgetall(season_key(season, "weights")) == {b"1": b"0.25"}
        set_weights(sync_redis(), season, {})
        assert not sync_redis().exists(season_key(season, "weights"))
