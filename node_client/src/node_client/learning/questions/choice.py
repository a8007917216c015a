"""The choice of a node's next training questions: new ones, or old ones that are asked again."""

import random
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec

from node_client.learning.questions.curriculum import (
    AnsweredQuestion,
    Curriculum,
    SeasonMix,
    StepOutcome,
)
from node_client.learning.questions.history import QuestionHistory
from node_client.learning.questions.ladder import Ladder
from node_client.learning.questions.stages import Stages
from node_client.learning.rollouts import LocalRollout
from node_client.settings.train_config import TrainConfig
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonInfo, TaskSpec
from swarm_tasks.allowlist import is_training_spec
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, StreamPosition, Verifier


class Questions:
    """The training questions of a node, chosen according to its settings.

    New questions form a stream: question n is determined by the season, `key`, n and the
    curriculum.
    """

    def __init__(
        self, *, verifier: Verifier, season: SeasonInfo, config: TrainConfig, key: bytes
    ) -> None:
        # A season with none of the configured datasets is asked as a whole.
        tasks = [task for task in season.tasks if task.dataset in config.datasets] or season.tasks
        season = msgspec.structs.replace(season, tasks=tasks)
        self._verifier = verifier
        self._season = season
        self._key = key
        self._counter = 0
        self._parts = make_curriculum(season, config)
        self._curriculum = [*self._parts.values()][-1]
        self._history = (
            QuestionHistory(epoch_size=config.history_epoch, key=key)
            if config.resampling == "history"
            else None
        )

    def draw(self, count: int) -> list[DrawnTask]:
        """Return a batch of the next `count` questions.

        With history resampling, some may be old questions, which were asked before. If the batch
        fails, here or when its answers are scored, its old questions are asked again in the next
        batch, except those that `exclude` dropped. Its new questions are not asked again. Raises
        RefusedError when the verifier fails.
        """
        if self._history is None:
            return self._draw_new(count)
        return [self._ask(place) for place in self._history.next_specs(count)]

    def exclude(self, spec: TaskSpec) -> None:
        """Never ask this question again, because the verifier fails on it.

        Without history resampling this does nothing, because no question is asked again.
        """
        if self._history is not None:
            self._history.exclude(spec)

    def is_shared(self, rollout: LocalRollout) -> bool:
        """Return whether a rollout may be shared: its task must belong to the season.

        Other nodes would drop the rollout of any other task.
        """
        return is_training_spec(rollout.task.spec, seed=self._season.seed, tasks=self._season.tasks)

    def update(self, rollouts: Sequence[LocalRollout], *, judge_round: int | None) -> None:
        """Learn what to ask next from the node's own rollouts of a step.

        `judge_round` is the number of the judge's latest round, None if there was none.
        """
        answered = [
            AnsweredQuestion(rollout.task.spec, [verdict.solved for verdict in rollout.verdicts])
            for rollout in rollouts
        ]
        reward = fmean(reward for rollout in rollouts for reward in rollout.group.rewards)
        stage = self._curriculum.stage
        self._curriculum.update(StepOutcome(answered, reward, judge_round))
        if self._history is not None:
            for question in answered:
                self._history.record(question.spec, question.solved)
            stage_ended = self._curriculum.stage > stage
            self._history.forget(lambda spec: stage_ended or self._curriculum.is_past(spec))

    def figures(self) -> dict[str, float]:
        """Return the curriculum's figures by name, for the step's report."""
        return self._curriculum.figures()

    def state(self) -> dict[str, Any]:
        """Return what `load` needs, as plain values."""
        return {
            "counter": self._counter,
            "history": None if self._history is None else self._history.state(),
            "curriculum": {name: part.state() for name, part in self._parts.items()},
        }

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Continue from a saved `state`.

        The saved history is ignored if this run does not use history resampling, or if the state is
        of another season (not `same_season`). The saved state of a curriculum is ignored if this
        run does not use that curriculum.
        """
        self._counter = state["counter"]
        if same_season and self._history is not None and state["history"] is not None:
            self._history.load(state["history"])
        for name, part in self._parts.items():
            if name in state["curriculum"]:
                part.load(state["curriculum"][name], same_season=same_season)

    def _draw_new(self, count: int) -> list[DrawnTask]:
        """Return the next tasks of the stream, as the curriculum chooses them."""
        places = [self._choose(counter) for counter in range(self._counter, self._counter + count)]
        # Counted before the draw: a task that the verifier cannot make must not be drawn again.
        self._counter += count
        return self._verifier.draw_many(
            places, key=self._key, part=Part.TRAINING, seed=self._season.seed
        )

    def _choose(self, counter: int) -> StreamPosition:
        rng = random.Random(f"{self._key.hex()}:{counter}")
        choice = self._curriculum.choose(counter, rng=rng)
        return StreamPosition(choice.dataset, choice.config, counter)

    def _ask(self, spec: TaskSpec | None) -> DrawnTask:
        """Return the old question with this spec, or the next new question if `spec` is None.

        Raises RefusedError when the verifier fails; an old question is then excluded.
        """
        if spec is None:
            (new,) = self._draw_new(1)
            return new
        try:
            return DrawnTask(spec, self._verifier.question(spec))
        except RefusedError:
            self.exclude(spec)
            raise


def make_curriculum(season: SeasonInfo, config: TrainConfig) -> dict[str, Curriculum]:
    """Return the curricula that the settings select, by name.

    `curriculum = staged+ladder` selects two, `staged` and then `ladder`. Every other value selects
    one. The node itself uses only the last one. In `staged+ladder`, the ladder lets `staged` choose
    the dataset of each question, and passes the outcome of each step on to `staged`.
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
