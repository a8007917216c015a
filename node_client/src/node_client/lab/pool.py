"""The rollout pool of a swarm in memory, which draws as the coordinator's relay does.

A request draws uniformly among the rollouts of all other nodes, without replacement. If the arm's
`drawing` is `informative`, rollouts that their senders declared informative are drawn first. If the
arm's `source` is `self`, a request draws among the node's own rollouts of earlier rounds.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from node_client.lab.config import Drawing, Source
from swarm_protocol.messages import ExternalRollout, Rollout


class PooledRollout(msgspec.Struct, frozen=True):
    """A rollout in the pool, with its sender and round, and whether it was declared informative."""

    node: str
    round: int
    declared: bool
    rollout: Rollout


class LabPool:
    """The rollouts that all nodes of one swarm shared in the latest rounds.

    `rounds` is the number of rounds for which the pool keeps a rollout.
    """

    def __init__(
        self, *, drawing: Drawing, rounds: int, seed: int, source: Source = "others"
    ) -> None:
        self.round = 0
        self._drawing = drawing
        self._source = source
        self._rounds = rounds
        self._seed = seed
        self._pooled: list[PooledRollout] = []

    def begin_round(self, number: int) -> None:
        """Start round `number`, and remove rollouts that are more than `rounds` rounds old.

        Rollouts of exactly this age stay until their node shares new ones (`put`). Without them, a
        node that draws early in a round might find no rollouts of other nodes.
        """
        self.round = number
        self._pooled = [each for each in self._pooled if number - each.round <= self._rounds]

    def put(self, node: str, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Add a node's rollouts, and remove its old ones.

        A rollout is old after `rounds` rounds. `informative` has the ids of the rollouts that the
        node declares informative.
        """
        declared = set(informative)
        self._pooled = [
            each
            for each in self._pooled
            if each.node != node or self.round - each.round < self._rounds
        ]
        self._pooled += [
            PooledRollout(node, self.round, rollout.id in declared, rollout) for rollout in rollouts
        ]

    def draw(self, node: str, count: int) -> list[ExternalRollout]:
        """Draw up to `count` rollouts for a node; their `age_s` is in rounds.

        If the pool's `source` is `others`, they are rollouts of other nodes. If it is `self`, they
        are the node's own rollouts of earlier rounds.
        """
        rng = random.Random(f"{self._seed}:{node}:{self.round}")
        available = [each for each in self._pooled if self._is_available(node, each)]
        is_preferred = self._drawing == "informative"
        first = [each for each in available if each.declared and is_preferred]
        others = [each for each in available if not (each.declared and is_preferred)]
        drawn = rng.sample(first, min(count, len(first)))
        drawn += rng.sample(others, min(count - len(drawn), len(others)))
        return [
            ExternalRollout(
                # A trainer drops rollouts with its own name.
                node=each.node if each.node != node else f"{node}-before",
                age_s=self.round - each.round,
                rollout=each.rollout,
            )
            for each in drawn
        ]

    def _is_available(self, node: str, pooled: PooledRollout) -> bool:
        if self._source == "self":
            return pooled.node == node and pooled.round < self.round
        return pooled.node != node

    def state(self) -> bytes:
        """Return the pool's state, for `load`."""
        return msgspec.json.encode((self.round, self._pooled))

    def load(self, state: bytes) -> None:
        """Restore what `state` returned."""
        self.round, self._pooled = msgspec.json.decode(state, type=tuple[int, list[PooledRollout]])


@dataclass
class LabExchange:
    """One node's access to the pool, a `RolloutExchange` for the trainer.

    `sent` and `received` count the bytes of the rollouts as JSON. `LabSwarm` sets a training node's
    counts to 0 at the start of each round.
    """

    pool: LabPool
    node: str
    sent: int = 0
    received: int = 0

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Add the node's rollouts to the pool."""
        self.sent += sum(len(msgspec.json.encode(rollout)) for rollout in rollouts)
        self.pool.put(self.node, rollouts, informative=informative)

    def fetch(self, count: int) -> list[ExternalRollout]:
        """Draw up to `count` rollouts from the pool."""
        drawn = self.pool.draw(self.node, count)
        self.received += sum(len(msgspec.json.encode(each.rollout)) for each in drawn)
        return drawn
