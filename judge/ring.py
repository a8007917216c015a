"""The latest questions of a season as rings of bits; pure.

A season's counted questions form one stream. A node's last RING answers are kept as two rings of
bits, `answered` and `solved`: bit `p mod RING` belongs to question `p` of the stream. A ring is
written only when its node takes part, so what is older than RING questions before the stream's end
must be masked out when many rings are read together (`align`).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

# As many questions as two nodes are compared on: 1,024 shared ones tell apart nodes whose pass@1
# differs by about .05.
RING = 1024

Bits = npt.NDArray[np.bool_]


def pack(bits: Bits) -> bytes:
    """Return one bit a question, padded with zeros to whole bytes."""
    return np.packbits(bits).tobytes()


def unpack(packed: Sequence[bytes], count: int) -> Bits:
    """Return packed bits as (rows, count)."""
    if not packed:
        return np.zeros((0, count), dtype=bool)
    joined = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(packed), -1)
    return np.unpackbits(joined, axis=1, count=count).astype(bool)


def slots(start: int, count: int) -> npt.NDArray[np.int64]:
    """Return where in a ring the questions `start` to `start + count` of the stream stand."""
    return np.arange(start, start + count) % RING


def positions(end: int) -> npt.NDArray[np.int64]:
    """Return for each slot the latest question before `end` that stands there; below 0: none."""
    return end - 1 - (end - 1 - np.arange(RING)) % RING


def align(rings: Bits, *, ends: npt.NDArray[np.int64], end: int) -> Bits:
    """Return rings (rows, RING) without what is older than RING questions before `end`.

    `ends` says up to which question each row was written.
    """
    return rings & (positions(end)[None, :] < ends[:, None])


def window_mask(spans: Iterable[tuple[int, int]], *, end: int) -> Bits:
    """Return which slots belong to the given (start, count) spans of the stream."""
    at = positions(end)
    mask = np.zeros(RING, dtype=bool)
    for start, count in spans:
        mask |= (at >= start) & (at < start + count)
    return mask
