"""Encodes the log-probs of a completion's tokens: quantised, and packed as base64.

Each log-prob is a little-endian uint16 that counts steps of 1/2048 below 0. A value between 0 and
-31.9995 is decoded with an error of at most 1/4096, so the probability changes by less than
0.025 %. A lower value (a probability below 10^-13, hardly ever sampled) is decoded as -31.9995. A
token takes 2⅔ characters.
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
    """Return log-probs, each 0 or less, as base64 text for a Completion's `logprobs`."""
    codes = [round(min(MAX_CODE, max(0.0, -value * STEPS))) for value in logprobs]
    return base64.b64encode(struct.pack(f"<{len(codes)}H", *codes)).decode()


def decode_logprobs(text: str) -> list[float] | None:
    """Decode what `encode_logprobs` returned; return None if the text is invalid.

    Every value is in [-31.9995, 0]. The sender may have invented the values: nobody can check them.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        codes = struct.unpack(f"<{len(packed) // 2}H", packed)
    except (binascii.Error, ValueError, struct.error):
        return None
    return [-code / STEPS for code in codes]


def without_logprobs(rollout: Rollout) -> Rollout:
    """Return the rollout without log-probs, for a peer that does not know or want them."""
    if all(each.logprobs is None and each.logprob is None for each in rollout.completions):
        return rollout
    bare = [
        msgspec.structs.replace(each, logprobs=None, logprob=None) for each in rollout.completions
    ]
    return msgspec.structs.replace(rollout, completions=bare)
