"""A curriculum in two stages: mathematics first, then code as well (SRPO, arXiv 2504.14286).

In the first stage questions come from the season's mathematical datasets (`questions.subjects`),
in the second from all. Both stages use the season's weights. If all datasets are of one kind, the
two stages do not differ. All questions belong to the season, so other nodes can train on all
rollouts.
"""

import random
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from node_client.learning.questions.curriculum import Curriculum, StepOutcome, choose_by_weight
from node_client.learning.questions.subjects import MATHEMATICS
from node_client.settings.choices import StageSwitch
from swarm_protocol.messages import SeasonInfo, TaskChoice

# The built-in season of a node that trains alone. It is not a season of the swarm, so it neither
# ends a stage nor passes its own state on to later seasons.
PRACTICE = "practice"

WINDOW = 25
PATIENCE = 2
MIN_GAIN = 0.01


@dataclass
class Plateau:
    """Detector of the point at which a reward stops rising, from means of non-overlapping windows.

    A window has WINDOW steps. Its mean becomes the new `best` if it is at least MIN_GAIN above the
    present `best`. The plateau is reached after PATIENCE consecutive windows without a new `best`.
    One window is not enough: the mean over a small node's few rollouts is uncertain by more than
    MIN_GAIN. Once reached, the plateau stays reached.

    `best` is None until the first window is complete. `waited` is the number of windows that were
    completed since `best` was set, and `window` has the rewards of the present window.
    """

    best: float | None = None
    waited: int = 0
    window: list[float] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        """Whether the reward has stopped rising."""
        return self.waited >= PATIENCE

    def update(self, reward: float) -> None:
        """Add the next step's reward. Does nothing once the plateau is reached."""
        if self.reached:
            return
        self.window.append(reward)
        if len(self.window) < WINDOW:
            return
        mean = fmean(self.window)
        self.window.clear()
        if self.best is None or mean >= self.best + MIN_GAIN:
            self.best, self.waited = mean, 0
        else:
            self.waited += 1


class Stages(Curriculum):
    """Curriculum in two stages: the season's mathematical datasets, then all of them.

    `switch` names what ends the first stage:

    - `plateau`: the training reward stops rising. When a ladder changes the difficulty, the search
      for a plateau starts over.
    - `round`: the number of the judge's latest round is higher, by at least `rounds`, than the
      first round number that this node saw.
    - `season`: the next season begins.

    The first stage never comes back.
    """

    def __init__(self, season: SeasonInfo, *, switch: StageSwitch, rounds: int) -> None:
        self._season = season.name
        # While practising: the state that the latest season of the swarm left.
        self._left: dict[str, Any] | None = None
        self._tasks = season.tasks
        first = [task for task in season.tasks if task.dataset in MATHEMATICS]
        self._first_tasks = first or season.tasks
        self._switch: StageSwitch = switch
        self._rounds = rounds
        self._first_round: int | None = None
        self._plateau = Plateau()

    def choose(self, counter: int, *, rng: random.Random) -> TaskChoice:
        """Return one of the datasets of the current stage, drawn by weight."""
        tasks = self._first_tasks if self.stage == 1 else self._tasks
        return choose_by_weight(tasks, rng=rng)

    def update(self, outcome: StepOutcome) -> None:
        """Begin the second stage if this step ends the first."""
        self._plateau.update(outcome.training_reward)
        if outcome.difficulty_changed and not self._plateau.reached:
            self._plateau = Plateau()
        if self._first_round is None:
            self._first_round = outcome.judge_round
        if self._switch == "plateau" and self._plateau.reached:
            self.stage = 2
        if self._switch == "round" and self._is_round_due(outcome.judge_round):
            self.stage = 2

    def figures(self) -> dict[str, float]:
        return {"stage": self.stage}

    def state(self) -> dict[str, Any]:
        return {
            "season": self._season,
            "left": self._left,
            "stage": self.stage,
            "first_round": self._first_round,
            "plateau": asdict(self._plateau),
        }

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Continue from a saved `state`, of this or another season.

        `same_season` is ignored, because `state` names its season. If `switch` is `season`, a
        change to another season ends the first stage.

        A node that trains alone is in the season PRACTICE, which does not count as another season.
        When such a node joins a season of the swarm, it continues from its state before PRACTICE.
        If it has no such state, it starts from the beginning.
        """
        was_practice = state["season"] == PRACTICE
        if self._season == PRACTICE:
            self._left = state["left"] if was_practice else state
        elif was_practice:
            if state["left"] is None:
                return
            state = state["left"]
        self.stage = state["stage"]
        self._first_round = state["first_round"]
        self._plateau = Plateau(**state["plateau"])
        if self._switch == "season" and self._season not in (state["season"], PRACTICE):
            self.stage = 2

    def _is_round_due(self, current: int | None) -> bool:
        if current is None or self._first_round is None:
            return False
        return current >= self._first_round + self._rounds
