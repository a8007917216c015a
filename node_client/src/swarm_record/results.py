"""A round's published results as lines of text; the chain contains their Merkle root.

A line is canonical JSON: names sorted, no spaces, only necessary escapes, floats in their shortest
form. The first line is a ResultsHead. A ResultLine follows for each node that was invited to the
round or requested its questions, ordered by node name.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from swarm_tasks.cells import Cells

# Hex bytes with one bit per question.
Bits = Annotated[str, Meta(pattern=r"^([0-9a-f]{2}){0,32}\Z")]


class ResultsHead(Struct, frozen=True):
    """The round whose results follow; `datasets` has one name per question, in order."""

    round: int
    season: str
    datasets: list[str]


class ResultLine(Struct, frozen=True):
    """A node's result in a round, with its model and arm at that time.

    `answered` marks the questions that count for the node, and `solved` those that it solved. Both
    are hex with one bit per question, starting with the highest bit of the first byte. `cells` maps
    each dataset to [correct, n].
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


def encode_results(head: ResultsHead, lines: Iterable[ResultLine]) -> list[bytes]:
    """Return a round's results as lines of JSON, without line feeds.

    The first line is `head`. The lines of the nodes follow, sorted by node name.
    """
    ordered = sorted(lines, key=lambda line: line.node.encode())
    return [msgspec.json.encode(line, order="sorted") for line in (head, *ordered)]
