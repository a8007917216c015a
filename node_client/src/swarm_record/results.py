"""A round's results as lines: what the chain fixes of its scores, and a season is added up from.

A line is canonical JSON: names sorted, no spaces, no escapes but needed, floats in their shortest
form. The first one is a ResultsHead, a ResultLine follows for each seat, by the node's name.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from swarm_record.merkle import merkle_root
from swarm_tasks.marks import Cells

# Bytes in hex, of one bit a question.
Bits = Annotated[str, Meta(pattern=r"^([0-9a-f]{2}){0,32}\Z")]


class ResultsHead(Struct, frozen=True):
    """Whose results follow; `datasets` has the round's questions' ones, in their order."""

    round: int
    season: str
    datasets: list[str]


class ResultLine(Struct, frozen=True):
    """A node's result in a round, with the labels that it had.

    `answered` and `solved` hold one bit a question, from the highest of the first byte on, in hex:
    questions that count, and those that were solved. `cells` maps each dataset to [correct, n].
    """

    node: str
    model: str
    arm: str
    status: Literal["scored", "absent"]
    reason: str
    correct: int
    n: int
    cells: Cells
    score: float | None
    interval: tuple[float, float] | None
    answered: Bits
    solved: Bits


def encode_result(line: ResultsHead | ResultLine) -> bytes:
    """Return a line without its line feed."""
    return msgspec.json.encode(line, order="sorted")


def encode_results(head: ResultsHead, lines: Iterable[ResultLine]) -> list[bytes]:
    """Return the lines of a round's results, in order and without line feeds."""
    ordered = sorted(lines, key=lambda line: line.node.encode())
    return [encode_result(head), *map(encode_result, ordered)]


def results_root(lines: Iterable[bytes]) -> str:
    """Return the Merkle root over the lines of a round's results."""
    return merkle_root(lines)
