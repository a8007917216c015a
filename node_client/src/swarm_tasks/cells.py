"""Counts right answers by dataset, and computes their macro pass@1; no I/O.

Server and client compute the same floats: counts are whole numbers, each dataset's share is one
division, and `math.fsum` rounds the sum of shares once, whatever their order.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# For each dataset: how many answers were right, and how many questions counted (at least one).
Cells = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class ScoreSummary:
    """The result of answering some questions: `n` of them count, and `correct` of those are solved.

    `cells` has both numbers for each dataset. `score` is the macro pass@1, None when no question
    counts.
    """

    cells: Cells
    correct: int
    n: int
    score: float | None


def summarize_outcomes(outcomes: Iterable[tuple[str, bool | None]]) -> ScoreSummary:
    """Return the summary of questions, each given as a pair of its dataset and its outcome.

    The outcome is True if the question was solved, False if it was not solved or not answered, and
    None if it could not be graded; such a question does not count.
    """
    cells: Cells = {}
    for dataset, solved in outcomes:
        if solved is not None:
            correct, n = cells.get(dataset, (0, 0))
            cells[dataset] = (correct + solved, n + 1)
    return ScoreSummary(
        cells=cells,
        correct=sum(correct for correct, _ in cells.values()),
        n=sum(n for _, n in cells.values()),
        score=macro_score(cells),
    )


def macro_score(cells: Cells) -> float | None:
    """Return the mean over datasets of the share of right answers, None when no question counts.

    Every dataset has the same weight, however many questions it had, so no node has an advantage
    from the way in which a round's questions were divided among datasets.
    """
    shares = [correct / n for correct, n in cells.values() if n > 0]
    return math.fsum(shares) / len(shares) if shares else None


def add_cells(one: Cells, other: Cells) -> Cells:
    """Return the sum of two sets of counts, by dataset."""
    return _combine(one, other, sign=1)


def subtract_cells(whole: Cells, part: Cells) -> Cells:
    """Return the counts of `whole` minus the counts of `part`, which were added to it earlier.

    Datasets without a question left are dropped. Raises ValueError when `whole` does not contain
    `part`.
    """
    return _combine(whole, part, sign=-1)


def _combine(one: Cells, other: Cells, *, sign: int) -> Cells:
    combined: Cells = {}
    for dataset in sorted({*one, *other}):
        correct, n = one.get(dataset, (0, 0))
        more_correct, more = other.get(dataset, (0, 0))
        correct, n = correct + sign * more_correct, n + sign * more
        if not 0 <= correct <= n:
            raise ValueError(f"{correct} right answers to {n} questions of {dataset}")
        if n > 0:
            combined[dataset] = (correct, n)
    return combined
