"""A public beacon, whose values nobody can know in advance: drand's chain "quicknet"; no I/O.

A round's rules may name a value that the beacon publishes only after the round's commitment. The
questions are then drawn with a key that mixes the round's secret with this value, so the operator
cannot choose the questions by choosing the secret (docs/decisions/0033-public-beacon.md).

This module checks only that a value's randomness is the SHA-256 of its signature. It does not check
the signature itself (BLS12-381): to verify that a value is the beacon's, ask drand servers that you
trust.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

# docs.drand.love: period and beginning of the chain never change, they are part of its hash.
QUICKNET = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
# Public servers of the League of Entropy, run by different organisations.
BEACON_URLS = (
    "https://api.drand.sh",
    "https://drand.cloudflare.com",
    "https://api2.drand.sh",
    "https://api3.drand.sh",
)
# How long a commitment is public before the beacon's value is: time for nodes to record it, and
# more than the expected error of the site's clock.
LEAD = timedelta(seconds=30)
# A server's response has some 250 bytes.
MAX_VALUE_BYTES = 1 << 12

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Signature = Annotated[str, Meta(pattern=r"^([0-9a-f]{2}){1,128}\Z")]
# Up to the year 8000, so that every time can be written.
Emission = Annotated[int, Meta(ge=1, le=1 << 36)]


@dataclass(frozen=True)
class Timetable:
    """When a chain publishes values: at `genesis` (Unix time), then every `period` seconds."""

    genesis: int
    period: int


TIMETABLES = {QUICKNET: Timetable(genesis=1_692_803_367, period=3)}


class Beacon(Struct, frozen=True):
    """Names a value of a beacon, by the hash of the chain and the number of the beacon's round."""

    chain: Hash
    round: Emission

    @property
    def emitted_at(self) -> datetime:
        """When the value is published. Raises KeyError for a chain that is not in TIMETABLES."""
        timetable = TIMETABLES[self.chain]
        later = timedelta(seconds=timetable.period * (self.round - 1))
        return datetime.fromtimestamp(timetable.genesis, UTC) + later

    @property
    def path(self) -> str:
        """The path of the value in the URL of a drand server."""
        return f"{self.chain}/public/{self.round}"


class BeaconValue(Struct, frozen=True):
    """A beacon's value: the number of its round, and in hex 32 random bytes and a signature."""

    round: Emission
    randomness: Hash
    signature: Signature

    @property
    def hashed(self) -> str:
        """The SHA-256 of the signature, in hex. In a genuine value, `randomness` is the same."""
        return hashlib.sha256(bytes.fromhex(self.signature)).hexdigest()


class BeaconError(Exception):
    """A server's response is not the value that was requested; the message says why."""


def next_beacon(chain: str, *, after: datetime) -> Beacon:
    """Return the `Beacon` that names a chain's first value published at `after` or later.

    Raises KeyError for a chain that is not in TIMETABLES.
    """
    timetable = TIMETABLES[chain]
    since = (after - datetime.fromtimestamp(timetable.genesis, UTC)) / timedelta(seconds=1)
    return Beacon(chain, max(1, 1 - int(-since // timetable.period)))


def read_value(raw: bytes, *, beacon: Beacon) -> BeaconValue:
    """Return the value in a server's response.

    Raises BeaconError if the response has no value, if the value is not of the round that `beacon`
    names, or if its randomness is not the hash of its signature.
    """
    try:
        value = msgspec.json.decode(raw, type=BeaconValue)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BeaconError(f"no value of a beacon: {problem}") from None
    if value.round != beacon.round:
        raise BeaconError(f"round {value.round} of the beacon instead of {beacon.round}")
    if value.randomness != value.hashed:
        raise BeaconError("its randomness is not the SHA-256 of its signature")
    return value


def mix_key(secret: bytes, value: BeaconValue) -> bytes:
    """Return the key with which a round's questions are drawn.

    The result is an HMAC-SHA256. Its key is `secret`, and its message is the 32 bytes that
    `value.randomness` encodes in hex.
    """
    return hmac.digest(secret, bytes.fromhex(value.randomness), "sha256")
