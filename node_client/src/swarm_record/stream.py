"""A season's counted rounds as one stream of columns, which ledgers keep a row of; pure.

Ranks compare nodes over a whole season, so a refresh must not read its rounds again. The season's
first questions, up to QUESTIONS of them, have a column each, kept as two bits: whether the node
answered it, and whether it solved it. From the first round on that does not fit whole, each round
has one column, kept as the macro score. By then a pair has so many rounds that single questions
say little more, and a year of rounds fits in a few kilobytes a node.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

# Half a dozen rounds of the largest size, or 64 rounds of 32 questions.
QUESTIONS = 2048

Bits = npt.NDArray[np.bool_]
Singles = npt.NDArray[np.float32]


def place_round(end: int, questions: int) -> tuple[int, int]:
    """Return where a round begins that joins a stream of `end` columns, and where it ends."""
    if end + questions <= QUESTIONS:
        return end, end + questions
    start = max(end, QUESTIONS)
    return start, start + 1


def pack(bits: Bits) -> bytes:
    """Return one bit a question, padded with zeros to whole bytes."""
    return np.packbits(bits).tobytes()


def unpack(packed: Sequence[bytes], count: int) -> Bits:
    """Return packed bits as (rows, count)."""
    if not packed:
        return np.zeros((0, count), dtype=bool)
    joined = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(packed), -1)
    return np.unpackbits(joined, axis=1, count=count).astype(bool)


def stack_scores(stored: Sequence[bytes], count: int) -> Singles:
    """Return stored scores of rounds as (rows, count); NaN after the end of a shorter row."""
    stacked = np.full((len(stored), count), np.nan, dtype=np.float32)
    for row, scores in zip(stacked, stored, strict=True):
        own = np.frombuffer(scores, dtype="<f4")
        row[: own.size] = own
    return stacked


def weigh_questions(datasets: Iterable[str]) -> Singles:
    """Return what each question of a round adds to a node's macro score, by its dataset."""
    names = np.array(list(datasets))
    if not names.size:
        return np.zeros(0, dtype=np.float32)
    _, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    return (1 / (len(counts) * counts[which])).astype(np.float32)
