"""Divides a season's tasks into training, held-out and judge tasks, which never overlap; no I/O.

A task is identified by an index in [0, 2**31). Two rules keep the three parts separate:

1. Each part has its own range of indices, from which a keyed hash draws. Without the key nobody can
   tell which indices the judge will ask.
2. Different indices may give the same question (there are only 100 products of two digits), so each
   part also has a range of question hashes. If an index is drawn for a part, and the hash of its
   question is outside the part's range, another index is drawn.
"""

import hashlib
import hmac
from enum import StrEnum

INDEX_END = 2**31


class Part(StrEnum):
    """A part of the keyspace, named after the purpose of its tasks."""

    TRAINING = "training"
    HELD_OUT = "held_out"
    JUDGE = "judge"


# The range of each part, of indices and of the first 31 bits of question hashes. Widths are powers
# of two, so that a hash modulo a width is uniform.
RANGES: dict[Part, range] = {
    Part.TRAINING: range(0, 2**30),
    Part.HELD_OUT: range(2**30, 2**30 + 2**29),
    Part.JUDGE: range(2**30 + 2**29, INDEX_END),
}


def keyed_index(*, key: bytes, part: Part, dataset: str, counter: int) -> int:
    """Return the `counter`-th index (from 0) of a key's stream for a part and a dataset.

    The index is an HMAC-SHA256 (RFC 2104), reduced to the part's range. Raises ValueError when the
    key is empty or the counter negative.
    """
    if not key:
        raise ValueError("the key of an index stream is empty: anyone could predict its indices")
    if counter < 0:
        raise ValueError(f"counter is {counter}, a stream starts at 0")
    message = b"\0".join([part.encode(), dataset.encode(), str(counter).encode()])
    drawn = int.from_bytes(hmac.digest(key, message, "sha256")[:8], "big")
    span = RANGES[part]
    return span.start + drawn % len(span)


def index_part(index: int) -> Part:
    """Return the part that an index belongs to. Raises ValueError outside [0, 2**31)."""
    for part, span in RANGES.items():
        if index in span:
            return part
    raise ValueError(f"index {index} lies outside [0, 2**31)")


def question_part(question: str) -> Part:
    """Return the part that a question belongs to by its SHA-256, whatever its index."""
    digest = hashlib.sha256(question.encode()).digest()
    return index_part(int.from_bytes(digest[:4], "big") >> 1)
