"""The relay on a real Valkey cluster of three masters."""

import msgspec
import pytest

from swarm_protocol.messages import Completion, Rollout, TaskSpec
from swarm_web.core.bus import switchboard
from swarm_web.core.store import async_redis, sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.claims import Check, take_checks, tell_lapsed, tell_weights
from swarm_web.relay.given import Given
from swarm_web.relay.handover import Left, Members
from swarm_web.relay.hub import Hub, read_limits
from swarm_web.relay.intake import ArchiveSample, SampleLimits, offer_samples, take_samples
from swarm_web.relay.keys import CHECKS, given_list_key, weights_key
from swarm_web.relay.likeness import digest
from swarm_web.relay.replica import Replica
from swarm_web.relay.selectors import delivered_to_others
from swarm_web.relay.window import Entry

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_cluster")]

NOW = 1_000_000.0
SEASONS = range(8)  # on all three servers


def replica(season: int, process: str) -> Replica:
    return Replica(
        async_redis(),
        season_id=season,
        process=process,
        max_age_s=600,
        most_bytes=1 << 20,
        most_entries=4096,
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
    hub = Hub(async_redis(), read_limits(), clock=lambda: NOW)
    hub._members._left = {(season, 1): Left("one.0", b"list") for season in SEASONS}
    hub._tally.given.update({(season, 1): 2 for season in SEASONS})
    await hub._members.write()
    await hub._write_given()
    for season in SEASONS:
        assert sync_redis().get(given_list_key(season, 1)) == b"list"
        assert delivered_to_others(1, season_id=season) == 2


async def test_given_list_is_handed_over_in_every_season() -> None:
    here, there = (Members(async_redis(), process=name) for name in ("here", "there"))
    node = Node(pk=1, name="amber")
    for members in (here, there):
        await members.listen()
    for season in SEASONS:
        old = await here.join(season, node)
        old.given.add("bold/a", Given(2, archived=False))
        new = await there.join(season, node)
        assert (old.left, "bold/a" in new.given) == (True, True)
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
    assert accepted == len(take_samples(sync_redis(), most=9)) == 2


def test_declared_rollout_is_checked_once() -> None:
    check = Check(season_id=1, node_id=1, key="one/r1", at=NOW, body=b"{}")
    tell_lapsed(sync_redis(), 1, [1, 2])
    for expected in ([check], []):
        sync_redis().rpush(CHECKS, msgspec.msgpack.encode(check))
        assert take_checks(sync_redis(), 9, now=NOW, max_age_s=600) == expected


def test_weights_are_stored_per_season() -> None:
    for season in SEASONS:
        tell_weights(sync_redis(), season, {1: 0.25})
        assert sync_redis().hgetall(weights_key(season)) == {b"1": b"0.25"}
        tell_weights(sync_redis(), season, {})
        assert not sync_redis().exists(weights_key(season))
