"""The stream of training tasks that belongs to one node."""

import random
from collections.abc import Sequence

from swarm_protocol.messages import SeasonInfo, TaskChoice
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, Verifier


class TaskStream:
    """Draws training tasks: which ones depends on the node's key and a counter alone.

    Save `counter` and hand it to a new stream to go on where the old one stopped.
    """

    def __init__(
        self, *, verifier: Verifier, season: SeasonInfo, key: bytes, counter: int = 0
    ) -> None:
        self._verifier = verifier
        self._season = season
        self._key = key
        self.counter = counter

    def draw(self, count: int) -> list[DrawnTask]:
        """Return the next tasks, their datasets chosen by the weights of the season's mix."""
        return [self._draw_one() for _ in range(count)]

    def _draw_one(self) -> DrawnTask:
        counter = self.counter
        choice = _choose(self._season.tasks, chance=random.Random(f"{self._key.hex()}:{counter}"))
        task = self._verifier.draw(
            key=self._key,
            part=Part.TRAINING,
            dataset=choice.dataset,
            config=choice.config,
            seed=self._season.seed,
            counter=counter,
        )
        self.counter = counter + 1
        return task


def _choose(tasks: Sequence[TaskChoice], *, chance: random.Random) -> TaskChoice:
    return chance.choices(tasks, weights=[task.weight for task in tasks])[0]
