"""Which dataset a node's next fresh question comes from, and how hard it is."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from swarm_protocol.messages import SeasonInfo, TaskChoice, TaskSpec


@dataclass(frozen=True)
class Answered:
    """A question that was answered, and which of its completions were right."""

    spec: TaskSpec
    solved: Sequence[bool]


@dataclass(frozen=True)
class Outcome:
    """What a step showed: own answers, their mean reward, and the latest judge round, if any.

    With `moved` the difficulty changes after it: rewards before and after cannot be compared.
    """

    answered: Sequence[Answered]
    training_reward: float
    judge_round: int | None
    moved: bool = False


class Curriculum(Protocol):
    """Chooses what to ask, and learns from how it was answered.

    `stage` is the number of the part that training is in. A new stage asks new questions: none of
    the previous stage come again.
    """

    @property
    def stage(self) -> int:
        """The number of the present stage, from 1 on."""

    def choose(self, counter: int, *, chance: random.Random) -> TaskChoice:
        """Return what the `counter`-th question of the stream is drawn from."""

    def note(self, outcome: Outcome) -> None:
        """Learn from a step."""

    def is_past(self, spec: TaskSpec) -> bool:
        """Whether a question that was asked before would not be asked now."""

    def figures(self) -> dict[str, float]:
        """Return where the curriculum stands, for the step's report."""

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values."""

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Go on from where `state` was taken."""


class SeasonMix:
    """The default: the season's mix as it is, whatever happens."""

    stage = 1

    def __init__(self, season: SeasonInfo) -> None:
        self._tasks = season.tasks

    def choose(self, counter: int, *, chance: random.Random) -> TaskChoice:
        """Return a task of the season by its weight."""
        return choose_by_weight(self._tasks, chance=chance)

    def note(self, outcome: Outcome) -> None:
        """Take no notice."""

    def is_past(self, spec: TaskSpec) -> bool:
        """Return False: what is asked never changes."""
        return False

    def figures(self) -> dict[str, float]:
        """Return nothing."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Need nothing."""


def choose_by_weight(tasks: Sequence[TaskChoice], *, chance: random.Random) -> TaskChoice:
    """Return one of the tasks, with the probability that its weight gives it."""
    return chance.choices(tasks, weights=[task.weight for task in tasks])[0]
