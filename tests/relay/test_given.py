"""GivenList: the rollouts that a node was given, with those not yet reported."""

from collections.abc import Container, Iterable

import msgspec
import pytest

from swarm_web.relay.given import REMEMBERED, Given, GivenList


def make_list(*keys: str) -> GivenList:
    given = GivenList()
    for key in keys:
        given.add(key, Given(7, archived=False))
    return given


def test_given_rollout_is_taken_once() -> None:
    given = make_list("amber/a", "amber/b")
    assert given.take(["amber/a", "amber/a"]) == [("amber/a", Given(7, archived=False))]
    assert given.take(["amber/a"]) == []


def test_rollout_that_was_not_given_is_not_taken() -> None:
    assert make_list("amber/a").take(["amber/b", "a", ""]) == []


def test_taken_rollout_stays_in_the_list() -> None:
    given = make_list("amber/a")
    given.take(["amber/a"])
    assert "amber/a" in given
    assert given


def fill(given: GivenList, keys: Iterable[str], *, held: Container[str]) -> None:
    """Add rollouts one by one from a pool that holds `held`; report every second one."""
    for number, key in enumerate(keys):
        given.add(key, Given(7, archived=False))
        if number % 2:
            given.take([key])
        given.forget(held)


def test_rollouts_in_the_pool_are_never_forgotten() -> None:
    keys = [f"amber/{number}" for number in range(40 * REMEMBERED)]
    given = GivenList()
    fill(given, keys, held=set(keys))
    assert all(key in given for key in keys)


def test_rollouts_not_in_the_pool_are_forgotten_except_the_latest() -> None:
    keys = [f"amber/{number}" for number in range(40 * REMEMBERED)]
    given = GivenList()
    fill(given, keys, held={"amber/0"})
    assert all(key in given for key in ("amber/0", *keys[-2 * REMEMBERED :]))
    assert "amber/1" not in given
    assert len(given) <= 4 * REMEMBERED + 2


def test_merged_list_has_the_rollouts_of_both_lists_in_one_state() -> None:
    given, earlier = make_list("amber/a"), make_list("amber/a", "amber/b")
    given.take(["amber/a"])
    given.merge(earlier)
    assert [key for key, _ in given.take(["amber/a", "amber/b"])] == ["amber/b"]


def test_packed_list_round_trips() -> None:
    given = make_list("amber/a", "amber/b")
    given.add("calm/c", Given(8, archived=True))
    given.take(["amber/a"])
    again = GivenList.unpack(given.pack())
    assert "amber/a" in again
    assert again.take(["amber/a", "calm/c", "amber/b"]) == [
        ("calm/c", Given(8, archived=True)),
        ("amber/b", Given(7, archived=False)),
    ]


def test_empty_list_round_trips() -> None:
    assert not GivenList.unpack(GivenList().pack())


@pytest.mark.parametrize("packed", [b"", b"x", b"\xc1", b"\x90", b"\x92\x90\x91\x01"])
def test_invalid_packed_list_raises_a_decode_error(packed: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        GivenList.unpack(packed)
