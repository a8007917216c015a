"""How many own and how many external rollouts a training set has.

A fixed mix is the default. The automatic one moves a place at a time to where it teaches more. It
compares what one place is worth on either side:

- an own place: the share of this node's rollouts that are informative;
- an external place: how much likelier the rollouts in it have a larger share of right completions
  than this node's own informative ones in the same dataset, than a smaller. External rollouts are
  informative ones, so they are compared with such: among equals the two cancel out, however seldom
  they are right. What such a node gets from others it finds by itself, and closer to its own
  policy. A place that stays empty counts for neither.

Both are followed by moving averages. SAPO (arXiv 2509.08721) found its best mix by trying; which
one that is depends on how seldom a node is right by itself, and changes while it learns. Why not a
bandit that is paid by the rise of the training reward: docs/decisions/0011-ladder-and-mix.md.

Bounded: at least one place stays external, so that its worth is still seen, and at least a quarter
stays local, because SAPO's 2/6 learned and forgot in turns. The size never changes. Pure, and no
chance in it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Protocol

from node_client.learning.rollouts import TrainingGroup
from node_client.settings.train_config import StepPlan, TrainConfig

# Own informative rollouts of each dataset that external ones are compared with, the latest.
COMPARED = 64
# Steps between two moves, the weight of the newest step in the averages (a memory of about ten
# steps), and by how much one side must be worth more than the other.
PERIOD = 10
NEWEST = 0.1
MARGIN = 0.1


@dataclass(frozen=True)
class Places:
    """I own and J external rollouts in a training set."""

    local: int
    external: int


class Mix(Protocol):
    """Says how the next training set is divided."""

    @property
    def places(self) -> Places:
        """The I and J of the next step."""

    def note(
        self,
        *,
        own: Sequence[TrainingGroup],
        comparable: Sequence[TrainingGroup],
        external: Sequence[TrainingGroup],
    ) -> None:
        """Learn from a step's own rollouts and from the external ones that could be used.

        `comparable` are those of the own ones that are of the season's difficulty, as the external
        ones are; a ladder asks others too.
        """

    def figures(self) -> dict[str, float]:
        """Return what decides, for the step's report."""

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values."""

    def load(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""


class FixedMix:
    """The same mix in every step."""

    def __init__(self, places: Places) -> None:
        self.places = places

    def note(
        self,
        *,
        own: Sequence[TrainingGroup],
        comparable: Sequence[TrainingGroup],
        external: Sequence[TrainingGroup],
    ) -> None:
        """Take no notice."""

    def figures(self) -> dict[str, float]:
        """Return nothing."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Need nothing."""


@dataclass
class _Worth:
    """What the automatic mix has seen, by dataset: the share of right completions as an average
    (`solved`), and in each of the latest informative rollouts (`informative`).
    """

    external: int
    steps: int = 0
    own_place: float | None = None
    external_place: float | None = None
    solved: dict[str, float] = field(default_factory=dict)
    # Checkpoints of before do not have it.
    informative: dict[str, list[float]] = field(default_factory=dict)

    def follow(self, own: Sequence[TrainingGroup]) -> None:
        """Learn from the rollouts that a step had of each dataset."""
        for dataset in {group.dataset for group in own}:
            groups = [group for group in own if group.dataset == dataset]
            newest = fmean(fmean(group.rewards) for group in groups)
            self.solved[dataset] = _average(self.solved.get(dataset), newest)
            shares = [fmean(group.rewards) for group in groups if group.informative]
            latest = self.informative.get(dataset, []) + shares
            self.informative[dataset] = latest[-COMPARED:]

    def help_of(self, group: TrainingGroup) -> float:
        """Return by how much likelier an external rollout did better than own ones than worse.

        From -1 to 1. One that teaches nothing, and only fills a place (`keep_uninformative`), helps
        nobody. A node whose own rollouts never are informative is compared by its average, which
        tells whether it solves all or nothing.
        """
        if not group.informative:
            return 0.0
        theirs = fmean(group.rewards)
        ours = self.informative.get(group.dataset) or [self.solved.get(group.dataset, 0.0)]
        return fmean((theirs > share) - (theirs < share) for share in ours)


class AutoMix:
    """Moves one place every PERIOD steps to the side where places are worth more."""

    def __init__(self, start: Places, *, batch: int) -> None:
        self._size = start.local + start.external
        # No more own rollouts can be trained on than are generated.
        self._least = min(max(1, self._size - batch), self._size - 1)
        self._most = max(self._least, self._size - max(1, self._size // 4))
        self._worth = _Worth(external=min(max(start.external, self._least), self._most))

    @property
    def places(self) -> Places:
        """The I and J of the next step."""
        return Places(local=self._size - self._worth.external, external=self._worth.external)

    def note(
        self,
        *,
        own: Sequence[TrainingGroup],
        comparable: Sequence[TrainingGroup],
        external: Sequence[TrainingGroup],
    ) -> None:
        """Follow what places are worth, and move one if it is time to."""
        worth = self._worth
        worth.follow(comparable)
        help_given = sum(worth.help_of(group) for group in external)
        worth.own_place = _average(worth.own_place, fmean(group.informative for group in own))
        worth.external_place = _average(worth.external_place, help_given / worth.external)
        worth.steps += 1
        if worth.steps % PERIOD == 0:
            gain = worth.external_place - worth.own_place
            move = (gain > MARGIN) - (gain < -MARGIN)
            worth.external = min(max(worth.external + move, self._least), self._most)

    def figures(self) -> dict[str, float]:
        """Return the places, and what one is worth on either side."""
        worth = self._worth
        return {
            "local": self.places.local,
            "external": self.places.external,
            "own_place": worth.own_place or 0.0,
            "external_place": worth.external_place or 0.0,
        }

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values."""
        return asdict(self._worth)

    def load(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken, within this run's bounds."""
        self._worth = _Worth(**state)
        self._worth.external = min(max(self._worth.external, self._least), self._most)


def make_mix(plan: StepPlan, config: TrainConfig) -> Mix:
    """Return the mix that the settings name; a node alone, or of one place, has nothing to mix."""
    places = Places(plan.local, plan.external)
    if config.mix == "auto" and config.arm == "swarm" and plan.size > 1:
        return AutoMix(places, batch=plan.batch)
    return FixedMix(places)


def _average(before: float | None, newest: float) -> float:
    return newest if before is None else before + NEWEST * (newest - before)
