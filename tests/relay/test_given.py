"""What a node was given: the latest, each reported once, and known again after a hang-up."""

import msgspec
import pytest

from swarm_web.relay.given import REMEMBERED, Given, GivenList


def make_list(*keys: str) -> GivenList:
    given = GivenList()
    for key in keys:
        given.add(key, Given(7, archived=False))
    return given


def test_what_was_given_is_taken_once() -> None:
    given = make_list("amber/a", "amber/b")
    assert given.take(["amber/a", "amber/a"]) == [("amber/a", Given(7, archived=False))]
    assert given.take(["amber/a"]) == []


def test_what_was_not_given_is_not_taken() -> None:
    assert make_list("amber/a").take(["amber/b", "a", ""]) == []


def test_what_was_reported_is_still_known() -> None:
    given = make_list("amber/a")
    given.take(["amber/a"])
    assert "amber/a" in given
    assert given


def test_the_latest_are_remembered_and_older_ones_forgotten() -> None:
    given = make_list(*(f"amber/{number}" for number in range(REMEMBERED + 1)))
    assert "amber/0" not in given
    assert len(given.take(f"amber/{number}" for number in range(REMEMBERED + 1))) == REMEMBERED


def test_of_those_that_were_reported_the_latest_are_remembered_too() -> None:
    given = GivenList()
    for number in range(REMEMBERED + 1):
        given.add(f"amber/{number}", Given(7, archived=False))
        given.take([f"amber/{number}"])
    known = [number for number in range(REMEMBERED + 1) if f"amber/{number}" in given]
    assert known == [*range(1, REMEMBERED + 1)]


def test_a_list_that_was_packed_is_the_same_again() -> None:
    given = make_list("amber/a", "amber/b")
    given.add("calm/c", Given(8, archived=True))
    given.take(["amber/a"])
    again = GivenList.unpack(given.pack())
    assert "amber/a" in again
    assert again.take(["amber/a", "calm/c", "amber/b"]) == [
        ("calm/c", Given(8, archived=True)),
        ("amber/b", Given(7, archived=False)),
    ]


def test_an_empty_list_is_nothing_to_keep() -> None:
    assert not GivenList.unpack(GivenList().pack())


@pytest.mark.parametrize("packed", [b"", b"x", b"\xc1", b"\x90", b"\x92\x90\x91\x01"])
def test_what_is_no_list_is_an_error(packed: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        GivenList.unpack(packed)
