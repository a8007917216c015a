"""A ladder of difficulty: easier questions if too few are solved, harder ones if nearly all are.

Each dataset of the season has rungs: reasoning-gym's own levels below and above the season's
difficulty (`swarm_tasks.levels`). A node is on one rung of each dataset, and starts on the season's
rung.

Other nodes drop rollouts that are not of the season's difficulty, because a sender could have made
them easy on purpose. So rollouts from other rungs are trained on here but not published, and every
HOME_EVERY-th new question has the season's difficulty: the node continues to share rollouts, and to
train on the difficulty that the judge asks.

The training reward covers all own rollouts, so it falls when the node climbs. The held-out curve
uses the season's difficulty only.
"""

import random
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from node_client.learning.questions.curriculum import (
    AnsweredQuestion,
    Curriculum,
    SeasonMix,
    StepOutcome,
)
from swarm_protocol.messages import Config, SeasonInfo, TaskChoice, TaskSpec
from swarm_tasks.levels import Rungs, rungs_around

HOME_EVERY = 4
# Rollouts on a rung before the share of right completions may move the node. At a share of 0.1 or
# 0.9 over 40 % of all groups of 8 have equal rewards and are not informative.
WINDOW = 16
LOWER_BELOW = 0.1
RAISE_ABOVE = 0.9


@dataclass
class _Climb:
    """The node's rung (difficulty level) in one of the season's datasets, and its results there."""

    task: TaskChoice
    rungs: Rungs
    rung: int
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    @property
    def config(self) -> Config:
        """The dataset's configuration at the current rung."""
        return self.rungs.configs[self.rung]

    def update(self, answered: AnsweredQuestion) -> None:
        """Record an answered question if it is of the current rung; change the rung if necessary.

        The last WINDOW results decide: the rung is raised if their mean share of right completions
        is above RAISE_ABOVE, and lowered if it is below LOWER_BELOW.
        """
        if (answered.spec.dataset, answered.spec.config) != (self.task.dataset, self.config):
            return
        self.recent.append(fmean(answered.solved))
        if len(self.recent) == WINDOW:
            self._move(fmean(self.recent))

    def restore(self, rung: int, recent: Sequence[float]) -> None:
        """Continue on a saved rung, with the saved results on it.

        If this rung does not exist in this version of the client, take the nearest one, with no
        results on it.
        """
        self.rung = min(max(rung, 0), len(self.rungs.configs) - 1)
        if self.rung == rung:
            self.recent.extend(recent)

    def _move(self, solved: float) -> None:
        up = (solved > RAISE_ABOVE) - (solved < LOWER_BELOW)
        rung = min(max(self.rung + up, 0), len(self.rungs.configs) - 1)
        if rung != self.rung:
            self.rung = rung
            self.recent.clear()


class Ladder(Curriculum):
    """Curriculum that raises and lowers the difficulty of each of the season's datasets.

    The curriculum `mix` chooses a question's dataset, by default with the season's weights. The
    ladder chooses its difficulty.
    """

    def __init__(self, season: SeasonInfo, mix: Curriculum | None = None) -> None:
        self._mix = mix or SeasonMix(season)
        rungs = [rungs_around(task) for task in season.tasks]
        self._climbs = [
            _Climb(task=task, rungs=around, rung=around.home)
            for task, around in zip(season.tasks, rungs, strict=True)
        ]

    def choose(self, counter: int, *, rng: random.Random) -> TaskChoice:
        """Return the dataset that `mix` chooses, at the difficulty of the node's rung.

        Every HOME_EVERY-th question has the season's difficulty instead.
        """
        task = self._mix.choose(counter, rng=rng)
        if counter % HOME_EVERY == 0:
            return task
        config = next(climb.config for climb in self._climbs if climb.task == task)
        return TaskChoice(dataset=task.dataset, config=config, weight=task.weight)

    def update(self, outcome: StepOutcome) -> None:
        """Change rungs according to the latest answers, and pass the outcome on to `mix`.

        In the outcome for `mix`, `difficulty_changed` says whether a rung changed.
        """
        before = self._rungs
        for answered in outcome.answered:
            for climb in self._climbs:
                climb.update(answered)
        self._mix.update(replace(outcome, difficulty_changed=self._rungs != before))

    def is_past(self, spec: TaskSpec) -> bool:
        """Return whether the question is not of the current rung of its dataset."""
        drawn = [(climb.task.dataset, climb.config) for climb in self._climbs]
        return (spec.dataset, spec.config) not in drawn

    @property
    def stage(self) -> int:  # type: ignore[override]
        """The stage of `mix`, the curriculum that chooses the datasets."""
        return self._mix.stage

    def figures(self) -> dict[str, float]:
        """Return the figures of `mix`, and one figure for each dataset, under the dataset's name.

        This figure is the number of rungs by which the node is above the season's rung; it is
        negative below that rung.
        """
        above = {climb.task.dataset: climb.rung - climb.rungs.home for climb in self._climbs}
        return {**self._mix.figures(), **above}

    def state(self) -> dict[str, Any]:
        return {
            "datasets": self._datasets,
            "rungs": self._rungs,
            "recent": [list(climb.recent) for climb in self._climbs],
        }

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Continue from a saved `state`.

        A state of another season (not `same_season`) is ignored. A dataset that `state` lacks stays
        on the season's rung. A state of an older client does not name its datasets; it is used only
        if it has as many as this ladder.
        """
        rungs: Sequence[int] = state["rungs"]
        datasets: Sequence[str] = state.get("datasets", self._datasets)
        if not same_season or len(rungs) != len(datasets):
            return
        # A season may have several configurations of a dataset, which keep their order.
        saved: defaultdict[str, deque[tuple[int, Sequence[float]]]] = defaultdict(deque)
        for dataset, rung, recent in zip(datasets, rungs, state["recent"], strict=True):
            saved[dataset].append((rung, recent))
        for climb in self._climbs:
            if saved[climb.task.dataset]:
                climb.restore(*saved[climb.task.dataset].popleft())

    @property
    def _datasets(self) -> list[str]:
        return [climb.task.dataset for climb in self._climbs]

    @property
    def _rungs(self) -> list[int]:
        return [climb.rung for climb in self._climbs]
