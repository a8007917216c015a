"""The *stream*: a season's results as a matrix with one row per node. Each round adds columns.

Ranks compare nodes over a whole season. Each ledger stores its node's row, so that ranks can be
computed again without reading all rounds. The first QUESTIONS columns are for single questions,
stored as two bits: whether the question counts for the node, and whether the node solved it. From
the first round whose questions do not all fit there, each round has one column, stored as the macro
score; by then, single questions would add little. A year of hourly rounds takes 35 kB per node. No
I/O.
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

    `end` is the number of columns in the stream so far. If all `questions` of the round fit into
    the first QUESTIONS columns, the round gets a column for each question. Otherwise it gets one
    column, after the first QUESTIONS columns.
    """
    if end + questions <= QUESTIONS:
        return end, end + questions
    start = max(end, QUESTIONS)
    return start, start + 1


def pack(bits: Bits) -> bytes:
    """Return a row of bits as bytes, with eight bits in each byte.

    The first of the eight is the byte's highest bit. The last byte is filled up with zeros.
    """
    return np.packbits(bits).tobytes()


def unpack(packed: Sequence[bytes], count: int) -> Bits:
    """Return an array [rows, count] of bits from rows that `pack` made of `count` bits each."""
    if not packed:
        return np.zeros((0, count), dtype=bool)
    joined = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(packed), -1)
    return np.unpackbits(joined, axis=1, count=count).astype(bool)


def stack_scores(stored: Sequence[bytes], count: int) -> Singles:
    """Return an array [rows, count] of stored rows of scores; shorter rows are padded with NaN.

    A stored row has at most `count` scores, as little-endian float32.
    """
    stacked = np.full((len(stored), count), np.nan, dtype=np.float32)
    for row, scores in zip(stacked, stored, strict=True):
        own = np.frombuffer(scores, dtype="<f4")
        row[: own.size] = own
    return stacked


def weigh_questions(datasets: Iterable[str]) -> Singles:
    """Return how much each question of a round adds to the macro score of a node that solves it.

    `datasets` has the dataset of each question. A question adds 1 / (number of different datasets ·
    number of questions of its dataset).
    """
    names = np.array(list(datasets))
    if not names.size:
        return np.zeros(0, dtype=np.float32)
    _, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    return (1 / (len(counts) * counts[which])).astype(np.float32)
