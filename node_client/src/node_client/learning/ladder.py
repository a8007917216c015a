"""A ladder of difficulty: easier questions where too little is solved, harder ones where all is.

Each dataset of the season has rungs, reasoning-gym's own levels below and above the season's
difficulty (`swarm_tasks.levels`), and a node stands on one of them. It starts on the season's.

What is shared: other nodes drop what is not of the season's difficulty, because nobody could tell
such a rollout from one that was made to be easy. So questions from other rungs are trained on here
and not published, and every HOME_EVERY-th fresh question is asked at the season's difficulty
whatever the rung: the node goes on giving to the swarm, and goes on training on what the judge
asks.

The training reward is over all own rollouts, so it falls when the node climbs. The held-out curve
is asked at the season's difficulty only.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from node_client.learning.curriculum import Answered, Curriculum, Outcome, SeasonMix
from swarm_protocol.messages import Config, SeasonInfo, TaskChoice, TaskSpec
from swarm_tasks.levels import Rungs, rungs_around

HOME_EVERY = 4
# Rollouts on a rung before it may be left; then the share of right completions decides. Below a
# tenth or above nine tenths half of all groups of 8 have equal rewards and teach nothing.
WINDOW = 16
LOWER_BELOW = 0.1
RAISE_ABOVE = 0.9


@dataclass
class _Climb:
    """Where a node stands on one task's rungs, and how it did there lately."""

    task: TaskChoice
    rungs: Rungs
    rung: int
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    @property
    def config(self) -> Config:
        """The configuration of the rung."""
        return self.rungs.configs[self.rung]

    def note(self, answered: Answered) -> None:
        """Count an answer to a question of this rung, and move when there are enough of them."""
        if (answered.spec.dataset, answered.spec.config) != (self.task.dataset, self.config):
            return
        self.recent.append(fmean(answered.solved))
        if len(self.recent) == WINDOW:
            self._move(fmean(self.recent))

    def _move(self, solved: float) -> None:
        up = (solved > RAISE_ABOVE) - (solved < LOWER_BELOW)
        rung = min(max(self.rung + up, 0), len(self.rungs.configs) - 1)
        if rung != self.rung:
            self.rung = rung
            self.recent.clear()


class Ladder:
    """Raises and lowers the difficulty of each of the season's tasks by itself.

    Which task is asked, at whatever difficulty, is chosen by `mix`: the season's, if left out.
    """

    def __init__(self, season: SeasonInfo, mix: Curriculum | None = None) -> None:
        self._mix = mix or SeasonMix(season)
        rungs = [rungs_around(task) for task in season.tasks]
        self._climbs = [
            _Climb(task=task, rungs=around, rung=around.home)
            for task, around in zip(season.tasks, rungs, strict=True)
        ]

    def choose(self, counter: int, *, chance: random.Random) -> TaskChoice:
        """Return a task of the mix, at the difficulty where the node stands."""
        task = self._mix.choose(counter, chance=chance)
        if counter % HOME_EVERY == 0:
            return task
        config = next(climb.config for climb in self._climbs if climb.task == task)
        return TaskChoice(dataset=task.dataset, config=config, weight=task.weight)

    def note(self, outcome: Outcome) -> None:
        """Move where the latest answers say so."""
        before = self._rungs
        for answered in outcome.answered:
            for climb in self._climbs:
                climb.note(answered)
        self._mix.note(replace(outcome, moved=self._rungs != before))

    def is_past(self, spec: TaskSpec) -> bool:
        """Whether a question is not of the rung on which the node stands."""
        asked = [(climb.task.dataset, climb.config) for climb in self._climbs]
        return (spec.dataset, spec.config) not in asked

    @property
    def stage(self) -> int:
        """The stage of the mix."""
        return self._mix.stage

    def figures(self) -> dict[str, float]:
        """Return the mix's, and for each dataset how many rungs above the season's the node is."""
        above = {climb.task.dataset: climb.rung - climb.rungs.home for climb in self._climbs}
        return {**self._mix.figures(), **above}

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values; the mix keeps its own state."""
        return {
            "rungs": self._rungs,
            "recent": [list(climb.recent) for climb in self._climbs],
        }

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Go on from where `state` was taken; another season has other rungs.

        So may another version of the client have: where the saved rung is missing, the node stands
        on the one next to it, and has answered nothing there.
        """
        rungs: Sequence[int] = state["rungs"]
        if not same_season or len(rungs) != len(self._climbs):
            return
        for climb, rung, recent in zip(self._climbs, rungs, state["recent"], strict=True):
            climb.rung = min(max(rung, 0), len(climb.rungs.configs) - 1)
            if climb.rung == rung:
                climb.recent.extend(recent)

    @property
    def _rungs(self) -> list[int]:
        return [climb.rung for climb in self._climbs]
