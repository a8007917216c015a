"""Values of a public beacon: validity, emission times, and the key derived from a value."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tasks.beacon import (
    QUICKNET,
    Beacon,
    BeaconError,
    BeaconValue,
    mix_key,
    next_beacon,
    read_value,
)

# The response of https://api.drand.sh/52db…e971/public/123.
VALUE = BeaconValue(
    123,
    "fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc",
    "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482"
    "e26cd02df835d3546d23c4b13e0dfc92",
)
BEACON = Beacon(QUICKNET, 123)
SECRET = bytes(range(32))


def test_value_of_drand_is_read() -> None:
    raw = msgspec.json.encode(VALUE)
    assert read_value(raw, beacon=BEACON) == VALUE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"round": 124}, "round 124 of the beacon instead of 123"),
        ({"randomness": "00" * 32}, "not the SHA-256"),
        ({"signature": "00" * 48}, "not the SHA-256"),
        ({"signature": "odd"}, "no value of a beacon"),
        ({"randomness": "FB" * 32}, "no value of a beacon"),
    ],
)
def test_invalid_beacon_value_is_refused(change: dict[str, object], message: str) -> None:
    raw = msgspec.json.encode({**msgspec.to_builtins(VALUE), **change})
    with pytest.raises(BeaconError, match=message):
        read_value(raw, beacon=BEACON)


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"\xff", b"[" * 10_000])
def test_malformed_beacon_response_is_refused(raw: bytes) -> None:
    with pytest.raises(BeaconError, match="no value of a beacon"):
        read_value(raw, beacon=BEACON)


def test_emission_times_are_those_of_quicknet() -> None:
    assert Beacon(QUICKNET, 1).emitted_at == datetime(2023, 8, 23, 15, 9, 27, tzinfo=UTC)
    assert Beacon(QUICKNET, 21).emitted_at == datetime(2023, 8, 23, 15, 10, 27, tzinfo=UTC)


@given(st.datetimes(datetime(2023, 9, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_next_value_is_emitted_within_one_period_and_not_earlier(after: datetime) -> None:
    emitted_at = next_beacon(QUICKNET, after=after).emitted_at
    assert timedelta(0) <= emitted_at - after < timedelta(seconds=3)


def test_first_value_is_the_next_one_before_the_chain_starts() -> None:
    assert next_beacon(QUICKNET, after=datetime(2020, 1, 1, tzinfo=UTC)).round == 1


def test_key_depends_on_the_secret_and_on_the_value() -> None:
    key = mix_key(SECRET, VALUE)
    other = msgspec.structs.replace(VALUE, randomness="00" * 32)
    assert len(key) == 32
    assert len({key, mix_key(SECRET, other), mix_key(SECRET[::-1], VALUE), SECRET}) == 4
