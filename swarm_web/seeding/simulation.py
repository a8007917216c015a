"""Participants of each round of the demo data, and the questions that they solve; no I/O.

A node that has trained through k rounds solves a question with the chance
floor + (ceiling - floor) · (1 - exp(-k / pace)).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarm_web.seeding.population import Population
from swarm_web.seeding.sizes import DemoSize

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_ABSENT_SHARE = 0.015
_SLOW_SHARE = 0.02


@dataclass(frozen=True)
class RoundOutcome:
    """One round, node by node: `nodes` (nodes,) are indexes in the population, ascending.

    `offered` (nodes,) marks the nodes that requested the questions. `answered`, `solved` and
    `latency_ms` are (nodes, questions). `latency_ms` counts from the request to each answer.
    """

    nodes: Ints
    offered: Bools
    answered: Bools
    solved: Bools
    latency_ms: Ints

    @property
    def complete(self) -> Bools:
        """Whether each node answered all questions. The shape is (nodes,)."""
        return np.asarray(self.answered.all(axis=1))


class Simulation:
    """Simulates the rounds one by one; `trained` counts each node's seats so far."""

    def __init__(
        self, population: Population, size: DemoSize, *, datasets: list[int], seed: int
    ) -> None:
        """`datasets` has for each question its dataset, as a column of `Population.floors`."""
        self.trained = np.zeros(len(population), dtype=np.int64)
        self._population, self._size, self._datasets = population, size, datasets
        self._rng = np.random.default_rng(seed)
        self._pace = max(4.0, size.rounds_per_node / 4)
        growth = (0.25 + np.arange(size.rounds) / size.rounds) ** 2
        self._seats = np.maximum(4, growth * size.seats / growth.sum()).astype(int)

    def simulate_round(self, index: int) -> RoundOutcome:
        """Return the outcome of round `index`, counted from 0.

        Must be called once for each round, in order, because nodes learn from round to round.
        """
        present = int(
            np.searchsorted(self._population.arrivals, index / self._size.rounds, "right")
        )
        seats = min(present, int(self._seats[index]))
        nodes = np.sort(self._rng.choice(present, seats, replace=False))
        shape = (seats, len(self._datasets))
        offered = self._rng.random(seats) >= _ABSENT_SHARE
        answered = np.repeat(offered[:, None], shape[1], axis=1)
        slow = self._rng.random(seats) < _SLOW_SHARE
        answered[slow, -max(1, shape[1] // 4) :] = False
        solved = (self._rng.random(shape) < self._chances(nodes)) & answered
        latency = np.cumsum(self._rng.integers(150, 2_500, shape), axis=1)
        self.trained[nodes] += 1
        return RoundOutcome(nodes, offered, answered, solved, latency)

    def _chances(self, nodes: Ints) -> npt.NDArray[np.float64]:
        """Return each node's chance to solve each question of a round, as (nodes, questions)."""
        learned = 1 - np.exp(-self.trained[nodes] / self._pace)
        floors, ceilings = self._population.floors[nodes], self._population.ceilings[nodes]
        chances = floors + (ceilings - floors) * learned[:, None]
        return np.asarray(chances[:, self._datasets])
