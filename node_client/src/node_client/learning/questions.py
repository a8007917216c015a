"""Which questions a node asks itself next: fresh ones of its stream, or old ones once more."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec

from node_client.learning.curriculum import Answered, Curriculum, Outcome, SeasonMix
from node_client.learning.history import History
from node_client.learning.ladder import Ladder
from node_client.learning.rollouts import LocalRollout
from node_client.learning.stages import Stages
from node_client.learning.stream import TaskStream
from node_client.settings.train_config import TrainConfig
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonInfo, TaskChoice, TaskSpec
from swarm_tasks.allowlist import is_training_spec
from swarm_tasks.verifier import DrawnTask, Verifier


class Questions:
    """The node's stream of training questions with what its settings make of it."""

    def __init__(
        self, *, verifier: Verifier, season: SeasonInfo, config: TrainConfig, key: bytes
    ) -> None:
        season = msgspec.structs.replace(season, tasks=_asked(season.tasks, config.datasets))
        self._verifier = verifier
        self._season = season
        self._parts = make_curriculum(season, config)
        self._curriculum = [*self._parts.values()][-1]
        self._stream = TaskStream(
            verifier=verifier, season=season, curriculum=self._curriculum, key=key
        )
        self._history = (
            History(epoch_size=config.history_epoch, key=key)
            if config.resampling == "history"
            else None
        )

    def draw(self, count: int) -> list[DrawnTask]:
        """Return the next questions. Raises RefusedError when the verifier fails.

        Old questions of a batch that fails, here or later, come again, all but the one that is
        given up.
        """
        if self._history is None:
            return self._stream.draw(count)
        return [self._ask(place) for place in self._history.next_places(count)]

    def give_up(self, spec: TaskSpec) -> None:
        """Do not ask a question again that makes the verifier fail."""
        if self._history is not None:
            self._history.give_up(spec)

    def is_shared(self, rollout: LocalRollout) -> bool:
        """Whether other nodes of the season can train on a rollout."""
        return is_training_spec(rollout.task.spec, seed=self._season.seed, tasks=self._season.tasks)

    def note(self, rollouts: Sequence[LocalRollout], *, judge_round: int | None) -> None:
        """Learn from how a step's questions were answered which ones to ask."""
        answered = [
            Answered(rollout.task.spec, [verdict.solved for verdict in rollout.verdicts])
            for rollout in rollouts
        ]
        reward = fmean(reward for rollout in rollouts for reward in rollout.group.rewards)
        stage = self._curriculum.stage
        self._curriculum.note(Outcome(answered, reward, judge_round))
        if self._history is not None:
            for question in answered:
                self._history.note(question.spec, question.solved)
            is_over = self._curriculum.stage > stage
            self._history.forget(lambda spec: is_over or self._curriculum.is_past(spec))

    def figures(self) -> dict[str, float]:
        """Return where the curriculum stands."""
        return self._curriculum.figures()

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values."""
        return {
            "counter": self._stream.counter,
            "history": None if self._history is None else self._history.state(),
            "curriculum": {name: part.state() for name, part in self._parts.items()},
        }

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Go on from where `state` was taken, as far as this run has the same settings."""
        self._stream.counter = state["counter"]
        if same_season and self._history is not None and state["history"] is not None:
            self._history.load(state["history"])
        for name, part in self._parts.items():
            if name in state["curriculum"]:
                part.load(state["curriculum"][name], same_season=same_season)

    def _ask(self, spec: TaskSpec | None) -> DrawnTask:
        """Return an old question, made again, or a fresh one."""
        if spec is None:
            (fresh,) = self._stream.draw(1)
            return fresh
        try:
            return DrawnTask(spec, self._verifier.question(spec))
        except RefusedError:
            self.give_up(spec)
            raise


def _asked(tasks: list[TaskChoice], datasets: Sequence[str]) -> list[TaskChoice]:
    """Return the tasks of these datasets, or all where a season has none of them."""
    return [task for task in tasks if task.dataset in datasets] or tasks


def make_curriculum(season: SeasonInfo, config: TrainConfig) -> dict[str, Curriculum]:
    """Return the parts of the curriculum that the settings name, by name.

    The last one chooses the questions, and passes on to those before it what it learns.
    """
    if config.curriculum == "season":
        return {"season": SeasonMix(season)}
    parts: dict[str, Curriculum] = {}
    if config.curriculum in ("staged", "staged+ladder"):
        switch, rounds = config.stage_switch, config.stage_rounds
        parts["staged"] = Stages(season, switch=switch, rounds=rounds)
    if config.curriculum in ("ladder", "staged+ladder"):
        parts["ladder"] = Ladder(season, parts.get("staged"))
    return parts
