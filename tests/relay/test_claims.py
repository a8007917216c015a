"""The worker's draw of declared rollouts: uniform, each once, and of doubted nodes apart."""

from collections.abc import Collection, Iterator

import msgspec
import pytest
from scipy.stats import chisquare

from swarm_protocol.messages import Completion, ExternalRollout, Rollout, TaskSpec
from swarm_web.relay.claims import Claims
from swarm_web.relay.pool import Bounds, Pool, declared_key, doubted_key, lapsed_key
from swarm_web.store import async_redis, sync_redis

SEASON = 1_000_001  # No season that another test makes.
AGE_S = 600


@pytest.fixture(autouse=True)
def empty_redis() -> Iterator[None]:
    _forget()
    yield
    _forget()


def _forget() -> None:
    for key in sync_redis().scan_iter(f"relay:{SEASON}:*"):
        sync_redis().delete(key)


@pytest.fixture
def claims() -> Claims:
    return Claims(sync_redis(), season_id=SEASON, max_age_s=AGE_S)


def encoded(name: str) -> bytes:
    answers = [Completion("1", "stop"), Completion("2", "stop")]
    rollout = Rollout(name, TaskSpec("gcd", {}, 1, 1, "test"), answers, "toy", 1, "abc")
    return msgspec.json.encode(ExternalRollout("somebody", 0.0, rollout))


async def fill(node: int, count: int, *, declared: Collection[int], now: float = 0) -> None:
    pool = Pool(async_redis(), season_id=SEASON, bounds=Bounds(1000, 100, AGE_S))
    await pool.publish(
        node,
        {f"r{i}": encoded(f"r{i}") for i in range(count)},
        informative={f"r{i}" for i in declared},
        now=now,
    )
    await async_redis().aclose()


def names(claims: Claims, most: int, *, now: float = 0) -> set[tuple[int, str]]:
    return {(claim.node_id, claim.rollout.id) for claim in claims.draw(most, now=now)}


async def test_only_declared_rollouts_are_drawn(claims: Claims) -> None:
    await fill(1, 9, declared=[2, 5])
    await fill(2, 9, declared=[])
    assert names(claims, 50) == {(1, "r2"), (1, "r5")}


async def test_each_is_drawn_once_as_long_as_it_lasts(claims: Claims) -> None:
    await fill(1, 3, declared=range(3))
    first = names(claims, 2)
    assert len(first) == 2
    rest = {name for _ in range(30) for name in names(claims, 2, now=AGE_S - 1)}
    assert rest == {(1, "r0"), (1, "r1"), (1, "r2")} - first


async def test_another_rollout_of_the_same_id_is_drawn_again(claims: Claims) -> None:
    await fill(1, 3, declared=range(3))
    assert len(names(claims, 50)) == 3
    # A node's share of the pool is 100: 100 newer ones push these out, and they come again.
    await fill(1, 103, declared=[], now=1)
    await fill(1, 3, declared=range(3), now=2)
    assert names(claims, 50, now=2) == {(1, "r0"), (1, "r1"), (1, "r2")}


async def test_nothing_is_drawn_of_an_empty_pool(claims: Claims) -> None:
    assert names(claims, 8) == set()


async def test_what_was_drawn_is_forgotten_with_the_rollouts(claims: Claims) -> None:
    await fill(1, 3, declared=range(3))
    claims.draw(8, now=0)
    key = f"relay:{SEASON}:checked"
    assert sync_redis().zcard(key) == 3
    assert 0 < sync_redis().ttl(key) <= AGE_S
    claims.draw(8, now=AGE_S + 1)
    assert not sync_redis().exists(key)


@pytest.mark.slow
async def test_a_node_is_drawn_as_often_as_it_declares(claims: Claims) -> None:
    await fill(1, 30, declared=range(30))
    await fill(2, 30, declared=range(10))
    drawn = {1: 0, 2: 0}
    for _ in range(400):
        for claim in claims.draw(3, now=0):
            drawn[claim.node_id] += 1
        sync_redis().delete(f"relay:{SEASON}:checked")
    # Redis draws with a seed of its own: a limit that chance passes once in a million runs.
    assert chisquare([drawn[1], drawn[2]], [900, 300]).pvalue > 1e-6


async def test_what_lapsed_nodes_declare_is_drawn_besides_and_offered_like_the_rest(
    claims: Claims,
) -> None:
    claims.tell_lapsed([1])
    await fill(1, 5, declared=range(5))
    await fill(2, 5, declared=range(5))
    drawn = claims.draw(2, now=0)
    assert sorted(claim.node_id for claim in drawn) == [1, 1, 2, 2]
    assert sync_redis().zcard(doubted_key(SEASON)) == 5


async def test_a_node_that_lapses_loses_what_it_has_declared_already(claims: Claims) -> None:
    await fill(1, 5, declared=range(3))
    await fill(12, 5, declared=range(2))
    claims.tell_lapsed([1])
    assert sync_redis().zrange(declared_key(SEASON), 0, -1) == [b"12:r0", b"12:r1"]
    assert sync_redis().zrange(doubted_key(SEASON), 0, -1) == [b"1:r0", b"1:r1", b"1:r2"]
    assert 0 < sync_redis().ttl(doubted_key(SEASON)) <= AGE_S


async def test_what_was_doubted_does_not_count_once_the_nodes_declarations_count_again(
    claims: Claims,
) -> None:
    claims.tell_lapsed([1])
    await fill(1, 5, declared=range(5))
    claims.tell_lapsed([])
    assert claims.draw(8, now=0) == []
    assert not sync_redis().exists(doubted_key(SEASON))


def test_only_the_nodes_that_were_told_last_have_lapsed(claims: Claims) -> None:
    claims.tell_lapsed([1, 2])
    claims.tell_lapsed([2, 3])
    assert sync_redis().smembers(lapsed_key(SEASON)) == {b"2", b"3"}
    assert sync_redis().ttl(lapsed_key(SEASON)) > 0
    claims.tell_lapsed([])
    assert not sync_redis().exists(lapsed_key(SEASON))
