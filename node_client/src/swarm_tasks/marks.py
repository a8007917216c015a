"""What a node's answers to a round come to: cells by dataset, and macro pass@1; pure.

Judge and client compute with these same functions, in a fixed order of datasets, so that a round
that anybody scores again comes out equal to the last bit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

# Dataset -> (correct, n).
Cells = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Marks:
    """`correct` of `n` questions, by dataset in `cells`; `score` is None when nothing counts."""

    cells: Cells
    correct: int
    n: int
    score: float | None


def mark(outcomes: Iterable[tuple[str, bool | None]]) -> Marks:
    """Add up (dataset, outcome) of each question.

    True is solved, False wrong or unanswered, None left out.
    """
    cells: Cells = {}
    for dataset, outcome in outcomes:
        if outcome is not None:
            correct, n = cells.get(dataset, (0, 0))
            cells[dataset] = (correct + outcome, n + 1)
    return Marks(
        cells=cells,
        correct=sum(correct for correct, _ in cells.values()),
        n=sum(n for _, n in cells.values()),
        score=macro_score(cells),
    )


def macro_score(cells: Mapping[str, tuple[int, int]]) -> float | None:
    """Return macro pass@1: the plain mean over datasets of the share solved, in [0, 1]."""
    shares = [correct / n for _, (correct, n) in sorted(cells.items()) if n]
    return fsum(shares) / len(shares) if shares else None


def add_cells(first: Cells, second: Cells) -> Cells:
    """Return the cells of both together."""
    together = dict(first)
    for dataset, (correct, n) in second.items():
        was_correct, was_n = together.get(dataset, (0, 0))
        together[dataset] = (was_correct + correct, was_n + n)
    return together


def subtract_cells(whole: Cells, part: Cells) -> Cells:
    """Return what `whole` has beyond `part`; datasets of which nothing is left are dropped."""
    rest = dict(whole)
    for dataset, (correct, n) in part.items():
        was_correct, was_n = rest.pop(dataset)
        if was_n > n:
            rest[dataset] = (was_correct - correct, was_n - n)
    return rest
