"""A curriculum in two stages: mathematics first, then code beside it (SRPO, arXiv 2504.14286).

In the first stage questions come from those datasets of the season that are like mathematics
(`learning.subjects`), in the second from all. Weights are the season's in both. A season with
datasets of one kind only has one stage. All that is asked is of the season, so all of it is shared.
"""

import random
from dataclasses import asdict
from typing import Any

from node_client.learning.curriculum import Outcome, choose_by_weight
from node_client.learning.plateau import Plateau
from node_client.learning.subjects import MATHEMATICS
from node_client.settings.choices import StageSwitch
from swarm_protocol.messages import SeasonInfo, TaskChoice, TaskSpec

# The built-in season of a node that is alone. It is no season of the swarm, so it neither is what
# ends a stage nor leaves anything to the seasons after it.
PRACTICE = "practice"


class Stages:
    """Knows which stage a node is in, and when the second begins.

    `switch` is what ends the first stage: a `plateau` of the training reward, the judge `round`
    that comes `rounds` after the first one seen, or the next `season`. There is no way back. Where
    the difficulty moves, the search for a plateau starts over.
    """

    def __init__(self, season: SeasonInfo, *, switch: StageSwitch, rounds: int) -> None:
        self._season = season.name
        # While practising: what the latest season of the swarm left.
        self._left: dict[str, Any] | None = None
        self._tasks = season.tasks
        first = [task for task in season.tasks if task.dataset in MATHEMATICS]
        self._first_tasks = first or season.tasks
        self._switch: StageSwitch = switch
        self._rounds = rounds
        self._first_round: int | None = None
        self._plateau = Plateau()
        self.stage = 1

    def choose(self, counter: int, *, chance: random.Random) -> TaskChoice:
        """Return a task of this stage by its weight."""
        tasks = self._first_tasks if self.stage == 1 else self._tasks
        return choose_by_weight(tasks, chance=chance)

    def note(self, outcome: Outcome) -> None:
        """Begin the second stage if this step ends the first."""
        self._plateau.note(outcome.training_reward)
        if outcome.moved and not self._plateau.reached:
            self._plateau = Plateau()
        if self._first_round is None:
            self._first_round = outcome.judge_round
        if self._switch == "plateau" and self._plateau.reached:
            self.stage = 2
        if self._switch == "round" and self._is_round_due(outcome.judge_round):
            self.stage = 2

    def is_past(self, spec: TaskSpec) -> bool:
        """Return False: the second stage asks for mathematics too."""
        return False

    def figures(self) -> dict[str, float]:
        """Return the stage."""
        return {"stage": self.stage}

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values."""
        return {
            "season": self._season,
            "left": self._left,
            "stage": self.stage,
            "first_round": self._first_round,
            "plateau": asdict(self._plateau),
        }

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Go on from where `state` was taken; another season may be what ends the first stage."""
        practised = state["season"] == PRACTICE
        if self._season == PRACTICE:
            self._left = state["left"] if practised else state
        elif practised:
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
