"""The queue of rollouts to check, and the set of nodes whose declarations have lapsed."""

import msgspec
import pytest

from swarm_protocol.messages import Completion, Rollout, TaskSpec
from swarm_web.core.store import sync_redis
from swarm_web.relay.check_queue import Check, set_lapsed, take_checks
from swarm_web.relay.keys import CHECKS, season_key

SEASON = 1_000_001  # Not the id of another test's season.
AGE_S = 600

pytestmark = pytest.mark.usefixtures("clean_redis")

ROLLOUT = Rollout(
    "r0", TaskSpec("gcd", {}, 1, 1, "test"), [Completion("1", "stop")] * 2, "toy", 1, "abc"
)


def offer(*names: str, step: int = ROLLOUT.step, season_id: int = SEASON) -> None:
    """Offer rollouts of the node amber to the worker."""
    for name in names:
        body = msgspec.json.encode(msgspec.structs.replace(ROLLOUT, id=name, step=step))
        check = Check(season_id, 1, f"amber/{name}", body)
        sync_redis().rpush(CHECKS, msgspec.msgpack.encode(check))


def take(most: int, *, now: float = 0) -> list[str]:
    checks = take_checks(sync_redis(), most, now=now, max_age_s=AGE_S)
    return [check.key for check in checks]


def test_offered_check_is_taken_unchanged() -> None:
    offer("r0")
    [check] = take_checks(sync_redis(), 8, now=0, max_age_s=AGE_S)
    assert (check.season_id, check.node_id, check.key) == (SEASON, 1, "amber/r0")
    assert check.read_rollout() == ROLLOUT


def test_take_returns_at_most_the_requested_checks_oldest_first() -> None:
    offer("r0", "r1", "r2")
    assert take(2) == ["amber/r0", "amber/r1"]
    assert take(2) == ["amber/r2"]
    assert take(2) == []


def test_check_is_taken_once_before_it_expires() -> None:
    offer("r0")
    assert take(1) == ["amber/r0"]
    offer("r0", "r0")
    assert take(2, now=AGE_S - 1) == []


def test_other_rollout_with_the_same_id_is_taken_too() -> None:
    offer("r0")
    offer("r0", step=ROLLOUT.step + 1)
    assert take(2) == ["amber/r0", "amber/r0"]


def test_rollouts_with_the_same_id_in_two_seasons_are_both_taken() -> None:
    offer("r0")
    offer("r0", season_id=SEASON + 1)
    assert len(take(2)) == 2


def test_record_of_taken_checks_expires_with_the_rollouts() -> None:
    offer("r0", "r1", "r2")
    take(3)
    key = season_key(SEASON, "checked")
    assert sync_redis().zcard(key) == 3
    assert 0 < sync_redis().ttl(key) <= AGE_S
    offer("r3")
    take(1, now=AGE_S + 1)
    assert sync_redis().zcard(key) == 1


def test_lapsed_nodes_replace_the_previous_ones() -> None:
    set_lapsed(sync_redis(), SEASON, [1, 2])
    set_lapsed(sync_redis(), SEASON, [2, 3])
    assert sync_redis().smembers(season_key(SEASON, "lapsed")) == {b"2", b"3"}
    assert sync_redis().ttl(season_key(SEASON, "lapsed")) > 0
    set_lapsed(sync_redis(), SEASON, [])
    assert not sync_redis().exists(season_key(SEASON, "lapsed"))


def test_undecodable_check_does_not_affect_others() -> None:
    offer("r0")
    sync_redis().rpush(CHECKS, b"\xc1")
    offer("r1")
    assert take(3) == ["amber/r0", "amber/r1"]
