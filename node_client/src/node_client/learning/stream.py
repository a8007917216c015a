"""The stream of training tasks that belongs to one node."""

import random

from node_client.learning.curriculum import Curriculum
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, StreamPlace, Verifier


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
        """Return the next tasks, as the curriculum chooses them. Raises RefusedError."""
        places = [self._choose(counter) for counter in range(self.counter, self.counter + count)]
        # Counted before the draw: a task that the verifier cannot make must not come again.
        self.counter += count
        return self._verifier.draw_many(
            places, key=self._key, part=Part.TRAINING, seed=self._season.seed
        )

    def _choose(self, counter: int) -> StreamPlace:
        chance = random.Random(f"{self._key.hex()}:{counter}")
        choice = self._curriculum.choose(counter, chance=chance)
        return StreamPlace(choice.dataset, choice.config, counter)
