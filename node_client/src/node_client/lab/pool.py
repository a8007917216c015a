"""The pool of a swarm in memory, which draws as the coordinator's relay does.

A request draws uniformly among the rollouts of all other nodes, without replacement. With
`informative` those that their senders declared so come first, uniformly drawn among themselves.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from node_client.lab.config import Drawing, Source
from swarm_protocol.messages import ExternalRollout, Rollout


class Pooled(msgspec.Struct, frozen=True):
    """A rollout in the pool: whose it is, of which round, and what its sender declared."""

    node: str
    round: int
    declared: bool
    rollout: Rollout


class Pool:
    """What all nodes of one swarm shared in the latest rounds."""

    def __init__(
        self, *, drawing: Drawing, rounds: int, seed: int, source: Source = "others"
    ) -> None:
        self.round = 0
        self._drawing = drawing
        self._source = source
        self._rounds = rounds
        self._seed = seed
        self._pooled: list[Pooled] = []

    def begin_round(self, number: int) -> None:
        """Begin a round. Nodes that draw early in it still find rollouts of the round before."""
        self.round = number
        self._pooled = [each for each in self._pooled if number - each.round <= self._rounds]

    def put(self, node: str, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Share rollouts; those that the node shared `rounds` rounds before it leave the pool."""
        declared = set(informative)
        self._pooled = [
            each
            for each in self._pooled
            if each.node != node or self.round - each.round < self._rounds
        ]
        self._pooled += [
            Pooled(node, self.round, rollout.id in declared, rollout) for rollout in rollouts
        ]

    def draw(self, node: str, count: int) -> list[ExternalRollout]:
        """Return up to `count` rollouts of others, in random order; ages are in rounds."""
        chance = random.Random(f"{self._seed}:{node}:{self.round}")
        others = [each for each in self._pooled if self._may_have(node, each)]
        if self._drawing == "informative":
            first = [each for each in others if each.declared]
            drawn = chance.sample(first, min(count, len(first)))
            others = [each for each in others if not each.declared]
            count -= len(drawn)
        else:
            drawn = []
        drawn += chance.sample(others, min(count, len(others)))
        return [
            ExternalRollout(
                # A trainer drops what came under its own name.
                node=each.node if each.node != node else f"{node}-before",
                age_s=self.round - each.round,
                rollout=each.rollout,
            )
            for each in drawn
        ]

    def _may_have(self, node: str, pooled: Pooled) -> bool:
        if self._source == "self":
            return pooled.node == node and pooled.round < self.round
        return pooled.node != node

    def state(self) -> bytes:
        """Return all that `load` needs."""
        return msgspec.json.encode((self.round, self._pooled))

    def load(self, state: bytes) -> None:
        """Go on from where `state` was taken."""
        self.round, self._pooled = msgspec.json.decode(state, type=tuple[int, list[Pooled]])


@dataclass
class Link:
    """One node's way to the pool, an `Exchange` of the trainer's. Counts bytes as JSON."""

    pool: Pool
    node: str
    sent: int = 0
    received: int = 0

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Share rollouts."""
        self.sent += sum(len(msgspec.json.encode(rollout)) for rollout in rollouts)
        self.pool.put(self.node, rollouts, informative=informative)

    def sample(self, count: int) -> list[ExternalRollout]:
        """Return rollouts of others."""
        drawn = self.pool.draw(self.node, count)
        self.received += sum(len(msgspec.json.encode(each.rollout)) for each in drawn)
        return drawn
