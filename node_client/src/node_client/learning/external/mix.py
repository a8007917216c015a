"""The mix of own and external rollouts in a training set.

A training set has a fixed number of places. Each has room for one rollout and is reserved either
for own or for external rollouts. A fixed mix, the default, never changes the number of external
places. The automatic mix changes one place at a time to the kind whose rollouts teach more. It
compares two values:

- the value of an own place: the share of this node's rollouts that are informative;
- the value of an external place: the probability that its rollout has a higher mean reward than an
  own informative rollout of the same dataset, minus the probability that it has a lower one. An
  empty place counts as 0. External rollouts are informative, so they are compared with own
  informative rollouts only. If all nodes are equally good, the expected value is therefore 0,
  however seldom they are right. This is intended: a node's own rollouts are then as good as
  external ones, and closer to its policy.

Both values are moving averages. SAPO (arXiv 2509.08721) found its best mix by experiments; which
mix is best depends on how seldom a node is right by itself, and changes while it learns.
docs/decisions/0011-ladder-and-mix.md gives the reasons for these two values.

At least one place stays external, so that the value of an external place is still measured. At
least a quarter of the places stay own, if the node generates that many rollouts in a step. Even
with a quarter of own rollouts (2 own and 6 external), SAPO's nodes learned and forgot in turn.
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
    """A fixed mix; `external` (J) is the number of places that are for external rollouts.

    The other places are for own rollouts. A subclass may change `external` from step to step.
    """

    def __init__(self, external: int) -> None:
        self.external = external

    def update(self, *, own: Groups, comparable: Groups, external: Groups) -> None:
        """Learn from a step's own rollouts and from the external rollouts in its training set.

        All external rollouts are of the season's difficulty. `comparable` has the own rollouts of
        this difficulty. With a ladder, `own` also has rollouts of other difficulties.
        """

    def notice(self) -> str | None:
        """Return a text for the owner if an automatic mix cannot change, else None."""
        return None

    def figures(self) -> dict[str, float]:
        """Return the figures of an automatic mix for the step's report; a fixed mix has none.

        `local` is I and `external` is J. `own_place` and `external_place` are the values that
        decide when the mix changes (see the module).
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

    `own_place` and `external_place` are the two values that the mix compares (see the module), None
    before the first step. For each dataset, `solved` has the moving average of own rewards, and
    `informative` has the mean rewards of the latest own informative rollouts.
    """

    steps: int = 0
    own_place: float | None = None
    external_place: float | None = None
    solved: dict[str, float] = field(default_factory=dict)
    # Older checkpoints lack this key.
    informative: dict[str, list[float]] = field(default_factory=dict)

    def follow(self, own: Groups) -> None:
        """Update `solved` and `informative` with own rollouts of the season's difficulty."""
        for dataset in {group.dataset for group in own}:
            groups = [group for group in own if group.dataset == dataset]
            newest = fmean(fmean(group.rewards) for group in groups)
            self.solved[dataset] = _average(self.solved.get(dataset), newest)
            shares = [fmean(group.rewards) for group in groups if group.informative]
            latest = self.informative.get(dataset, []) + shares
            self.informative[dataset] = latest[-COMPARED:]

    def advantage_of(self, group: TrainingGroup) -> float:
        """Return how an external rollout compares with own informative rollouts, in [-1, 1].

        The result is the share of the latest own informative rollouts of its dataset that have a
        lower mean reward, minus the share that have a higher one. If the dataset has none, the
        external rollout is compared with the node's average reward in the dataset (0 if unknown).
        An uninformative external rollout (kept with `keep_uninformative`) gets 0.
        """
        if not group.informative:
            return 0.0
        theirs = fmean(group.rewards)
        ours = self.informative.get(group.dataset) or [self.solved.get(group.dataset, 0.0)]
        return fmean((theirs > share) - (theirs < share) for share in ours)


class AutoMix(RolloutMix):
    """A mix that adapts how many places of the training set are own and how many are external.

    Every PERIOD steps, one place changes to the kind with the higher value (see the module), if the
    values differ by more than MARGIN. The training set has `size` places, and `external` is the
    number of external places at the start. Both kinds keep at least one place. At least a quarter
    of the places (rounded down) stay own, or `batch` places if that is less. At most `batch`
    places are own, because a step may generate no more than `batch` own rollouts.
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
        """Update the values of own and of external places with the groups of one step.

        `comparable` has the own groups of the season's difficulty. Every PERIOD steps, the two
        values are compared. If they differ by more than MARGIN, one place changes to the kind with
        the higher value, unless the limits that the class describes forbid it.
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
        """Continue from a saved `state`, with J moved into the limits of this run's settings."""
        self.external = self._bound(state["external"])
        self._places = _Places(**{name: state[name] for name in state if name != "external"})

    def _bound(self, external: int) -> int:
        return min(max(external, self._minimum), self._maximum)


def make_mix(plan: StepPlan, config: TrainConfig) -> RolloutMix:
    """Return the mix that the settings choose.

    It is always fixed in an arm without external rollouts, and for a training set of one rollout.
    """
    if config.mix == "auto" and config.arm == "swarm" and plan.size > 1:
        return AutoMix(plan.external, size=plan.size, batch=plan.batch)
    return RolloutMix(plan.external)


def _average(before: float | None, newest: float) -> float:
    return newest if before is None else before + NEWEST * (newest - before)
