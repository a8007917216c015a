"""Which index a task gets, and why training, held-out and judge tasks never meet; no I/O.

A task of a season is named by an index in [0, 2**31). Two walls keep the three parts apart:

1. Each part owns a sub-range of the indices, and a keyed hash draws from it. Without the key nobody
   can tell which indices the judge will ask.
2. Different indices may still give the same question (a product of two digits has 100 of them), so
   each part also owns a class of the question's hash, and draws that miss it are repeated.
"""

import hashlib
import hmac
from enum import StrEnum

INDEX_END = 2**31


class Part(StrEnum):
    """What a task is drawn for."""

    TRAINING = "training"
    HELD_OUT = "held_out"
    JUDGE = "judge"


# Widths are powers of two: a hash taken modulo a width is uniform. The question classes follow the
# same shares, because one share of a hash's 31 leading bits is one share of the questions.
RANGES: dict[Part, range] = {
    Part.TRAINING: range(0, 2**30),
    Part.HELD_OUT: range(2**30, 2**30 + 2**29),
    Part.JUDGE: range(2**30 + 2**29, INDEX_END),
}


def keyed_index(*, key: bytes, part: Part, dataset: str, counter: int) -> int:
    """Return the `counter`-th index of a stream: HMAC-SHA256 (RFC 2104) into the part's range.

    Raises ValueError when the key is empty or the counter negative.
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
    """Return the part that a question's SHA-256 assigns it to, whatever its index."""
    digest = hashlib.sha256(question.encode()).digest()
    return index_part(int.from_bytes(digest[:4], "big") >> 1)
