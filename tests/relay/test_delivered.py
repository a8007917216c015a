"""GivenList: the rollouts that a node was given, with those not yet reported."""

from collections.abc import Container, Iterable

import msgspec
import pytest

from swarm_web.relay.delivered import REMEMBERED, Delivered, DeliveredList


def make_list(*keys: str) -> DeliveredList:
    delivered = DeliveredList()
    for key in keys:
        delivered.add(key, Delivered(7, archived=False))
    return delivered


def test_given_rollout_is_taken_once() -> None:
    delivered = make_list("amber/a", "amber/b")
    assert delivered.take(["amber/a", "amber/a"]) == [("amber/a", Delivered(7, archived=False))]
    assert delivered.take(["amber/a"]) == []


def test_rollout_that_was_not_given_is_not_taken() -> None:
    assert make_list("amber/a").take(["amber/b", "a", ""]) == []


def test_taken_rollout_stays_in_the_list() -> None:
    delivered = make_list("amber/a")
    delivered.take(["amber/a"])
    assert "amber/a" in delivered
    assert delivered


def fill(delivered: DeliveredList, keys: Iterable[str], *, held: Container[str]) -> None:
    """Add rollouts one by one from a pool that holds `held`; report every second one."""
    for number, key in enumerate(keys):
        delivered.add(key, Delivered(7, archived=False))
        if number % 2:
            delivered.take([key])
        delivered.forget(held)


def test_rollouts_in_the_pool_are_never_forgotten() -> None:
    keys = [f"amber/{number}" for number in range(40 * REMEMBERED)]
    delivered = DeliveredList()
    fill(delivered, keys, held=set(keys))
    assert all(key in delivered for key in keys)


def test_rollouts_not_in_the_pool_are_forgotten_except_the_latest() -> None:
    keys = [f"amber/{number}" for number in range(40 * REMEMBERED)]
    delivered = DeliveredList()
    fill(delivered, keys, held={"amber/0"})
    assert all(key in delivered for key in ("amber/0", *keys[-2 * REMEMBERED :]))
    assert "amber/1" not in delivered
    assert len(delivered) <= 4 * REMEMBERED + 2


def test_merged_list_has_the_rollouts_of_both_lists_in_one_state() -> None:
    delivered, earlier = make_list("amber/a"), make_list("amber/a", "amber/b")
    delivered.take(["amber/a"])
    delivered.merge(earlier)
    assert [key for key, _ in delivered.take(["amber/a", "amber/b"])] == ["amber/b"]


def test_packed_list_round_trips() -> None:
    delivered = make_list("amber/a", "amber/b")
    delivered.add("calm/c", Delivered(8, archived=True))
    delivered.take(["amber/a"])
    again = DeliveredList.unpack(delivered.pack())
    assert "amber/a" in again
    assert again.take(["amber/a", "calm/c", "amber/b"]) == [
        ("calm/c", Delivered(8, archived=True)),
        ("amber/b", Delivered(7, archived=False)),
    ]


def test_empty_list_round_trips() -> None:
    assert not DeliveredList.unpack(DeliveredList().pack())


@pytest.mark.parametrize("packed", [b"", b"x", b"\xc1", b"\x90", b"\x92\x90\x91\x01"])
def test_invalid_packed_list_raises_a_decode_error(packed: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        DeliveredList.unpack(packed)
