"""The stream of training tasks that belongs to one node."""

import random

from node_client.learning.curriculum import Curriculum
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, Verifier


class TaskStream:
    """Draws training tasks: each one depends on the node's key, a counter and the curriculum.

    Save `counter` and hand it to a new stream to go on where the old one stopped.
    """

    def __init__(
        self,
        *,
        verifier: Verifier,
        season: SeasonInfo,
        curriculum: Curriculum,
        key: bytes,
        counter: int = 0,
    ) -> None:
        self._verifier = verifier
        self._season = season
        self._curriculum = curriculum
        self._key = key
        self.counter = counter

    def draw(self, count: int) -> list[DrawnTask]:
        """Return the next tasks, as the curriculum chooses them."""
        return [self._draw_one() for _ in range(count)]

    def _draw_one(self) -> DrawnTask:
        counter = self.counter
        # Counted before the draw: a task that the verifier cannot make must not come again.
        self.counter += 1
        choice = self._curriculum.choose(
            counter, chance=random.Random(f"{self._key.hex()}:{counter}")
        )
        return self._verifier.draw(
            key=self._key,
            part=Part.TRAINING,
            dataset=choice.dataset,
            config=choice.config,
            seed=self._season.seed,
            counter=counter,
        )
