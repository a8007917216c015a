"""Log-probs of a completion's tokens on the wire: quantised, and packed as base64.

Each is a little-endian uint16 that counts steps of 1/2048 below 0. So a value from 0 down to
-31.9995 comes out wrong by 1/4096 at most, which is 0.025 % of a ratio; what is lower (less than
one in 10^13, hardly ever sampled) comes out as -31.9995. A token costs 2⅔ characters.
"""

import base64
import binascii
import struct
from collections.abc import Sequence

import msgspec

from swarm_protocol.messages import Rollout

STEPS = 2048
MAX_CODE = 0xFFFF


def encode_logprobs(logprobs: Sequence[float]) -> str:
    """Return log-probs, each 0 or less, as they travel."""
    codes = [round(min(MAX_CODE, max(0.0, -value * STEPS))) for value in logprobs]
    return base64.b64encode(struct.pack(f"<{len(codes)}H", *codes)).decode()


def decode_logprobs(text: str) -> list[float] | None:
    """Return what `encode_logprobs` packed, or None where a peer sent something else.

    Every value lies in [-31.9995, 0] whatever was sent; whether it is true, nobody knows.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        codes = struct.unpack(f"<{len(packed) // 2}H", packed)
    except (binascii.Error, ValueError, struct.error):
        return None
    return [-code / STEPS for code in codes]


def without_logprobs(rollout: Rollout) -> Rollout:
    """Return the rollout as a peer can read it that knows no log-probs, or wants none."""
    if all(each.logprobs is None and each.logprob is None for each in rollout.completions):
        return rollout
    bare = [
        msgspec.structs.replace(each, logprobs=None, logprob=None) for each in rollout.completions
    ]
    return msgspec.structs.replace(rollout, completions=bare)
