"""Swarm minus isolated in each dataset, for one model of a season; pure.

The unit is a node, as in `judge.comparison`, and its number is its share solved in the dataset
over its rounds. Nothing is tested: so many differences would find something by chance. Which
rounds a node was there for is not corrected for, so hard rounds may weigh on one arm.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from judge.comparison import MIN_ROUNDS, welch_interval
from swarm_record.stats import Interval
from swarm_tasks.marks import Cells


@dataclass(frozen=True)
class CellUnit:
    """One node's cells over `rounds` rounds of a season."""

    arm: str
    rounds: int
    cells: Cells


@dataclass(frozen=True)
class TaskGap:
    """The difference of the arms' mean shares in one dataset, as fractions of one.

    Both means are over nodes with at least MIN_ROUNDS rounds. The interval is Welch's at 95 %, None
    where an arm shows no spread.
    """

    dataset: str
    n_swarm: int
    n_isolated: int
    swarm: float
    isolated: float
    interval: Interval | None

    @property
    def difference(self) -> float:
        """Swarm minus isolated."""
        return self.swarm - self.isolated


def compare_tasks(units: Iterable[CellUnit]) -> list[TaskGap]:
    """Return the gaps of one model by dataset; those that an arm never met are left out."""
    shares: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for unit in units:
        if unit.rounds >= MIN_ROUNDS:
            for dataset, (correct, n) in unit.cells.items():
                shares[dataset][unit.arm].append(correct / n)
    return [
        _measure(dataset, by_arm)
        for dataset, by_arm in sorted(shares.items())
        if by_arm["swarm"] and by_arm["isolated"]
    ]


def _measure(dataset: str, by_arm: Mapping[str, list[float]]) -> TaskGap:
    swarm, isolated = np.array(by_arm["swarm"]), np.array(by_arm["isolated"])
    return TaskGap(
        dataset=dataset,
        n_swarm=len(swarm),
        n_isolated=len(isolated),
        swarm=float(swarm.mean()),
        isolated=float(isolated.mean()),
        interval=welch_interval(swarm, isolated),
    )
