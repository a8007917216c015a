"""How many own and how many external rollouts a training set has.

A fixed mix is the default. The automatic mix moves one place at a time to the side, own or
external, where rollouts teach more. It compares the value of a place on both sides:

- an own place: the share of this node's rollouts that are informative;
- an external place: the probability that its rollout has a higher mean reward than an own
  informative rollout of the same dataset, minus the probability that it has a lower one;
  0 for an empty place. External rollouts are informative, so they are compared with own informative
  ones only. Among equal nodes the expected value is therefore 0, however seldom they are right:
  each finds by itself, and closer to its own policy, what it could get from the others.

Both values are moving averages. SAPO (arXiv 2509.08721) found its best mix by experiments; which
mix is best depends on how seldom a node is right by itself, and changes while it learns.
docs/decisions/0011-ladder-and-mix.md explains why this is not a bandit that is rewarded by the
increase of the training reward.

At least one place stays external, so that its value is still measured, and at least a quarter stay
own places, because nodes with SAPO's mix 2/6 alternately learned and forgot. The size of the
training set never changes. Pure and deterministic.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from node_client.learning.rollouts import TrainingGroup
from node_client.settings.train_config import StepPlan, TrainConfig

Groups = Sequence[TrainingGroup]

# External rollouts are compared with this number of latest own informative ones of their dataset.
COMPARED = 64
# Steps between two moves, the weight of the newest step in the averages (over about ten steps), and
# the least difference in value for a move.
PERIOD = 10
NEWEST = 0.1
MARGIN = 0.1


class RolloutMix:
    """Decides how many places of the next training set are external.

    `external` is this number, J; the other places are for own rollouts. In this base class the
    number is fixed.
    """

    def __init__(self, external: int) -> None:
        self.external = external

    def update(self, *, own: Groups, comparable: Groups, external: Groups) -> None:
        """Learn from a step's own rollouts and from the external ones in its training set.

        `comparable` are the own rollouts that have the season's difficulty, as all external ones
        do. With a ladder, `own` also contains rollouts of other difficulties.
        """

    def notice(self) -> str | None:
        """Return a text for the owner if an automatic mix has no room to change, else None."""
        return None

    def figures(self) -> dict[str, float]:
        """Return the figures of an automatic mix for the step's report; a fixed mix has none.

        They are I (`local`), J (`external`), and the values of an own and of an external place of
        the training set (see the module).
        """
        return {}

    def state(self) -> dict[str, Any]:
        """Return what `load` needs, as plain values."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a saved `state`."""


@dataclass
class _Places:
    """What the automatic mix has learned.

    `own_place` and `external_place` are the values of a place (see the module), None before the
    first step. For each dataset, `solved` has the moving average of own rewards, and `informative`
    has a list: the mean reward of each of the latest own informative rollouts.
    """

    steps: int = 0
    own_place: float | None = None
    external_place: float | None = None
    solved: dict[str, float] = field(default_factory=dict)
    # Older checkpoints lack this key.
    informative: dict[str, list[float]] = field(default_factory=dict)

    def follow(self, own: Groups) -> None:
        """Update `solved` and `informative` with a step's own rollouts.

        They must be of the season's difficulty.
        """
        for dataset in {group.dataset for group in own}:
            groups = [group for group in own if group.dataset == dataset]
            newest = fmean(fmean(group.rewards) for group in groups)
            self.solved[dataset] = _average(self.solved.get(dataset), newest)
            shares = [fmean(group.rewards) for group in groups if group.informative]
            latest = self.informative.get(dataset, []) + shares
            self.informative[dataset] = latest[-COMPARED:]

    def advantage_of(self, group: TrainingGroup) -> float:
        """Return how an external rollout compares with own informative ones, in [-1, 1].

        Of the latest own informative rollouts of its dataset, it is the share with a lower mean
        reward than the external rollout, minus the share with a higher one. If there are none, the
        node's average reward in the dataset is used instead: it shows whether the node solves
        everything or nothing. An uninformative external rollout, which only fills a place
        (`keep_uninformative`), gets 0.
        """
        if not group.informative:
            return 0.0
        theirs = fmean(group.rewards)
        ours = self.informative.get(group.dataset) or [self.solved.get(group.dataset, 0.0)]
        return fmean((theirs > share) - (theirs < share) for share in ours)


class AutoMix(RolloutMix):
    """A mix that moves one place of the training set from own to external rollouts, or back.

    Every PERIOD steps, one place goes to the kind of rollout whose places have the higher value
    (see the module), if the values differ by more than MARGIN. `external` is the number of external
    places to begin with, and `size` the size of the training set. Both kinds keep at least one
    place. At most `batch` places, the number of own rollouts generated in a step, are own; within
    this limit, at least a quarter (rounded down) stay own.
    """

    def __init__(self, external: int, *, size: int, batch: int) -> None:
        self._size = size
        self._batch = batch
        # No more own rollouts can be trained on than are generated.
        self._minimum = min(max(1, size - batch), size - 1)
        self._maximum = max(self._minimum, size - max(1, size // 4))
        self._places = _Places()
        super().__init__(self._bound(external))

    def update(self, *, own: Groups, comparable: Groups, external: Groups) -> None:
        """Update the values of an own and of an external place with the groups of one step.

        Every PERIOD steps, one place moves to the side with the higher value if the values differ
        by more than MARGIN and the class's limits allow it. `comparable` are the own groups of the
        season's difficulty.
        """
        places = self._places
        places.follow(comparable)
        advantage = sum(places.advantage_of(group) for group in external)
        places.own_place = _average(places.own_place, fmean(group.informative for group in own))
        places.external_place = _average(places.external_place, advantage / self.external)
        places.steps += 1
        if places.steps % PERIOD == 0:
            gain = places.external_place - places.own_place
            self.external = self._bound(self.external + (gain > MARGIN) - (gain < -MARGIN))

    def notice(self) -> str | None:
        if self._minimum < self._maximum:
            return None
        return (
            f"mix = auto has no effect: a training set of {self._size} rollouts, of which batch = "
            f"{self._batch} are generated, always has {self.external} external ones. A larger "
            "training set or batch would let the mix change."
        )

    def figures(self) -> dict[str, float]:
        return {
            "local": self._size - self.external,
            "external": self.external,
            "own_place": self._places.own_place or 0.0,
            "external_place": self._places.external_place or 0.0,
        }

    def state(self) -> dict[str, Any]:
        return {"external": self.external, **asdict(self._places)}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a saved `state`; J is limited to what this run's settings allow."""
        self.external = self._bound(state["external"])
        self._places = _Places(**{name: state[name] for name in state if name != "external"})

    def _bound(self, external: int) -> int:
        return min(max(external, self._minimum), self._maximum)


def make_mix(plan: StepPlan, config: TrainConfig) -> RolloutMix:
    """Return the mix that the settings choose.

    It is always fixed in arms that use no external rollouts, and for a training set of one place.
    """
    if config.mix == "auto" and config.arm == "swarm" and plan.size > 1:
        return AutoMix(plan.external, size=plan.size, batch=plan.batch)
    return RolloutMix(plan.external)


def _average(before: float | None, newest: float) -> float:
    return newest if before is None else before + NEWEST * (newest - before)
