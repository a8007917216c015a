"""Curricula choose the dataset and the difficulty of a node's next new question."""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swarm_protocol.messages import SeasonInfo, TaskChoice, TaskSpec


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question, and which of its completions were right."""

    spec: TaskSpec
    solved: Sequence[bool]


@dataclass(frozen=True)
class StepOutcome:
    """The result of a training step, from which a curriculum learns what to ask next.

    `answered` has the questions of the node's own rollouts, and `training_reward` is the mean
    reward of these rollouts. `judge_round` is the number of the judge's latest round, None if there
    was none. `difficulty_changed` is true if a ladder changes the difficulty after this step: the
    rewards before and after the change cannot be compared.
    """

    answered: Sequence[AnsweredQuestion]
    training_reward: float
    judge_round: int | None
    difficulty_changed: bool = False


class Curriculum(ABC):
    """Base class of curricula, which choose what to ask and learn from the answers.

    By default a curriculum has no state and one stage.

    `stage` is the number of the current stage, starting at 1. When a new stage begins, no question
    of an earlier stage is asked again.
    """

    stage = 1

    @abstractmethod
    def choose(self, counter: int, *, rng: random.Random) -> TaskChoice:
        """Return the dataset and configuration of the node's new question number `counter`."""

    def update(self, outcome: StepOutcome) -> None:  # noqa: B027
        """Update the curriculum with the outcome of a step. By default this does nothing."""

    def is_past(self, spec: TaskSpec) -> bool:
        """Return whether an old question must not be asked again; by default False.

        A ladder returns True for a question from another rung. When a new stage begins, all earlier
        questions are dropped without a call of this method.
        """
        return False

    def figures(self) -> dict[str, float]:
        """Return numbers by name that describe the curriculum's state, for the step's report."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return what `load` needs, as plain values."""
        return {}

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:  # noqa: B027
        """Continue from a saved `state`; `same_season` is true if it was saved in this season."""


class SeasonMix(Curriculum):
    """The default curriculum: the season's task mix."""

    def __init__(self, season: SeasonInfo) -> None:
        self._tasks = season.tasks

    def choose(self, counter: int, *, rng: random.Random) -> TaskChoice:
        """Return one of the season's datasets, drawn by weight."""
        return choose_by_weight(self._tasks, rng=rng)


def choose_by_weight(tasks: Sequence[TaskChoice], *, rng: random.Random) -> TaskChoice:
    """Return one of the tasks, with a probability in proportion to its weight."""
    return rng.choices(tasks, weights=[task.weight for task in tasks])[0]
