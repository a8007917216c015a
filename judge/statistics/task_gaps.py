"""The difference swarm - isolated in each dataset, for one model of a season; no I/O.

The unit is a node, as in `judge.statistics.comparison`, and its value is the share of the dataset's
questions that it solved over its rounds. Nothing is tested, because among many datasets some would
differ by chance. Values are not adjusted for the difficulty of a node's rounds, so an arm with
harder rounds may have a lower mean.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from judge.statistics.comparison import MIN_ROUNDS, welch_interval
from swarm_record.stats import Interval
from swarm_tasks.cells import Cells


@dataclass(frozen=True)
class CellUnit:
    """One node in a season: its arm, its number of rounds, and its [correct, n] by dataset."""

    arm: str
    rounds: int
    cells: Cells


@dataclass(frozen=True)
class TaskGap:
    """The mean fraction of a dataset's questions that the nodes of each arm solved.

    Both means, `swarm` and `isolated`, are over nodes with at least MIN_ROUNDS rounds. `interval`
    is Welch's 95 % interval of the difference, swarm minus isolated. It is None if either arm has
    only one node, or if within either arm all nodes solved the same fraction.
    """

    dataset: str
    n_swarm: int
    n_isolated: int
    swarm: float
    isolated: float
    interval: Interval | None

    @property
    def difference(self) -> float:
        """The difference of the two means: `swarm` minus `isolated`."""
        return self.swarm - self.isolated


def compare_tasks(units: Iterable[CellUnit]) -> list[TaskGap]:
    """Return the comparison of one model's arms in each dataset, in the order of datasets' names.

    Nodes with fewer than MIN_ROUNDS rounds are left out. A dataset is compared if at least one
    remaining node of each arm was asked a question from it.
    """
    shares: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for unit in units:
        if unit.rounds >= MIN_ROUNDS:
            for dataset, (correct, n) in unit.cells.items():
                shares[dataset][unit.arm].append(correct / n)
    return [
        _make_gap(dataset, by_arm)
        for dataset, by_arm in sorted(shares.items())
        if by_arm["swarm"] and by_arm["isolated"]
    ]


def _make_gap(dataset: str, by_arm: Mapping[str, list[float]]) -> TaskGap:
    swarm, isolated = np.array(by_arm["swarm"]), np.array(by_arm["isolated"])
    return TaskGap(
        dataset=dataset,
        n_swarm=len(swarm),
        n_isolated=len(isolated),
        swarm=float(swarm.mean()),
        isolated=float(isolated.mean()),
        interval=welch_interval(swarm, isolated),
    )
