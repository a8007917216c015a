"""A season's counted rounds as one stream of columns; each ledger stores its node's row; pure.

Ranks compare nodes over a whole season, and a refresh must not read all of its rounds again. The
first QUESTIONS questions of the season have one column each, stored as two bits: whether it counts
for the node, and whether the node solved it. From the first round that does not fit completely,
each round has one column, stored as the macro score. After that many rounds, single questions add
little; a year of hourly rounds takes 35 kB per node.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

# Eight rounds of the largest size, or 64 rounds of 32 questions.
QUESTIONS = 2048

Bits = npt.NDArray[np.bool_]
Singles = npt.NDArray[np.float32]


def allocate_columns(end: int, questions: int) -> tuple[int, int]:
    """Return the first column of a round that is added to a stream, and the stream's new end.

    `end` is the stream's number of columns so far. The round gets a column for each of its
    `questions` if all of them fit into the first QUESTIONS columns, otherwise one.
    """
    if end + questions <= QUESTIONS:
        return end, end + questions
    start = max(end, QUESTIONS)
    return start, start + 1


def pack(bits: Bits) -> bytes:
    """Return bits as bytes, eight in each: the first of the eight is the byte's highest bit.

    The last byte is filled up with zeros.
    """
    return np.packbits(bits).tobytes()


def unpack(packed: Sequence[bytes], count: int) -> Bits:
    """Return the bits of rows that `pack` made, equally long, as an array [rows, count]."""
    if not packed:
        return np.zeros((0, count), dtype=bool)
    joined = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(packed), -1)
    return np.unpackbits(joined, axis=1, count=count).astype(bool)


def stack_scores(stored: Sequence[bytes], count: int) -> Singles:
    """Return an array [rows, count] of stored rows of scores; shorter rows are padded with NaN.

    The stored scores are float32, little-endian.
    """
    stacked = np.full((len(stored), count), np.nan, dtype=np.float32)
    for row, scores in zip(stacked, stored, strict=True):
        own = np.frombuffer(scores, dtype="<f4")
        row[: own.size] = own
    return stacked


def weigh_questions(datasets: Iterable[str]) -> Singles:
    """Return how much each question of a round adds to the macro score of a node that solves it.

    That is 1 / (datasets · questions of its dataset); `datasets` has one name per question.
    """
    names = np.array(list(datasets))
    if not names.size:
        return np.zeros(0, dtype=np.float32)
    _, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    return (1 / (len(counts) * counts[which])).astype(np.float32)
