"""Summary statistics of one round: over all nodes, by question, and by model and arm; no I/O.

Pages that list rounds read these statistics instead of a round's thousands of scores.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from swarm_record.stream import unpack
from swarm_tasks.cells import Cells, add_cells

BASE_ARM = "base"
# Nodes choose their models' names, so this bounds the size of a round's summary.
MAX_GROUPS = 32


@dataclass(frozen=True)
class ScoredResult:
    """A node's score in a round; `competes` is false if the node is quarantined.

    `answered` and `solved` have one packed bit per question (`swarm_record.stream.pack`): whether
    the question counts in the node's score, and whether the node solved it.
    """

    model: str
    arm: str
    score: float
    answered: bytes
    solved: bytes
    competes: bool = True


@dataclass(frozen=True)
class ArmGroup:
    """The nodes of one model and arm in a round: the mean and the sample variance of their scores.

    The variance is 0 for one node.
    """

    model: str
    arm: str
    nodes: int
    mean: float
    variance: float


@dataclass(frozen=True)
class RoundStatistics:
    """Statistics of one round's scores.

    `scored` is the number of scored nodes. `tallies` has a pair for each question, in order: how
    many scored nodes solved it, and for how many it counts. All other attributes leave out
    quarantined nodes. `groups` has the MAX_GROUPS largest groups of nodes with the same model and
    arm. `trained` is the number of nodes whose arm is not `base`; the quartiles (`low`, `median`,
    `high`) and `best` are over the scores of these nodes, None if there are none.
    """

    scored: int
    trained: int
    low: float | None
    median: float | None
    high: float | None
    best: float | None
    tallies: list[tuple[int, int]]
    groups: list[ArmGroup]


def summarise(results: Sequence[ScoredResult], *, questions: int) -> RoundStatistics:
    """Return a round's statistics, given the results of its scored nodes."""
    competing = [result for result in results if result.competes]
    trained = [result.score for result in competing if result.arm != BASE_ARM]
    low, median, high = np.quantile(trained, (0.25, 0.5, 0.75)).tolist() if trained else [None] * 3
    return RoundStatistics(
        scored=len(results),
        trained=len(trained),
        low=low,
        median=median,
        high=high,
        best=max(trained, default=None),
        tallies=_tally(results, questions=questions),
        groups=_group(competing),
    )


def tally_datasets(results: Iterable[tuple[str, Cells]]) -> dict[str, Cells]:
    """Return each arm's cells, summed over its nodes, given the (arm, cells) of each node."""
    by_arm: defaultdict[str, Cells] = defaultdict(dict)
    for arm, cells in results:
        by_arm[arm] = add_cells(by_arm[arm], cells)
    return dict(by_arm)


def _tally(results: Sequence[ScoredResult], *, questions: int) -> list[tuple[int, int]]:
    answered = unpack([result.answered for result in results], questions).sum(axis=0)
    solved = unpack([result.solved for result in results], questions).sum(axis=0)
    return list(zip(solved.tolist(), answered.tolist(), strict=True))


def _group(results: Sequence[ScoredResult]) -> list[ArmGroup]:
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for result in results:
        scores[result.model, result.arm].append(result.score)
    largest = sorted(scores.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_GROUPS]
    return [
        ArmGroup(
            model=model,
            arm=arm,
            nodes=len(found),
            mean=float(np.mean(found)),
            variance=float(np.var(found, ddof=1)) if len(found) > 1 else 0.0,
        )
        for (model, arm), found in largest
    ]
