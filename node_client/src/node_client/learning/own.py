"""A node's own rollouts: questions are drawn, answered L times each, and scored."""

import random
from collections.abc import Iterable, Sequence

from node_client.learning.crew import Answer, answer
from node_client.learning.dynamic import needs_more, prefer_informative
from node_client.learning.questions.choice import Questions
from node_client.learning.rewards import Reward
from node_client.learning.rollouts import LocalRollout, TrainingGroup, make_rollout
from node_client.learning.stopwatch import Stopwatch
from node_client.learning.team import SEEDS_APART, Team
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import StepPlan, TrainConfig
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonInfo, TaskSpec
from swarm_tasks.answers import known_rules
from swarm_tasks.verifier import DrawnTask, Verifier


class RolloutMaker:
    """Makes a node's own rollouts, with all processes of its team."""

    def __init__(
        self,
        *,
        policy: Policy,
        verifier: Verifier,
        season: SeasonInfo,
        config: TrainConfig,
        plan: StepPlan,
        questions: Questions,
        reward: Reward,
        team: Team,
    ) -> None:
        self._policy = policy
        self._verifier = verifier
        self._season = season
        self._config = config
        self._plan = plan
        self._questions = questions
        self._reward = reward
        self._team = team

    def make(self, *, wanted: int, seed: int, watch: Stopwatch) -> list[LocalRollout]:
        """Answer a batch of questions, and more where dynamic sampling finds too little in them.

        `wanted` is the number of informative ones that it looks for. Raises RefusedError when the
        verifier fails.
        """
        rollouts = self._answer_batch(seed, watch)
        while self._config.resampling == "dynamic" and needs_more(
            [rollout.group for rollout in rollouts],
            wanted=wanted,
            batch=self._plan.batch,
            most_batches=self._config.dynamic_batches,
        ):
            seed += SEEDS_APART
            rollouts += self._answer_batch(seed, watch)
        return rollouts

    def groups_to_train_on(
        self, rollouts: Sequence[LocalRollout], *, places: int, chance: random.Random
    ) -> list[TrainingGroup]:
        """Return the groups that may be trained on, of which `places` will be."""
        groups = [rollout.group for rollout in rollouts]
        if self._config.resampling != "dynamic":
            return groups
        return prefer_informative(groups, count=places, chance=chance)

    def _answer_batch(self, seed: int, watch: Stopwatch) -> list[LocalRollout]:
        """Draw questions, answer each L times, and have the answers scored."""
        with watch.measure("score"):
            tasks = self._questions.draw(self._plan.batch)
        with watch.measure("generate"):
            order = Answer(
                questions=[task.question for task in tasks],
                completions=self._plan.completions,
                max_new_tokens=self._plan.max_completion_length,
                temperature=self._config.temperature,
                top_p=self._config.top_p,
                system_prompt=self._season.system_prompt,
                seed=seed,
            )
            with self._team.carrying_out(order):
                answers = answer(order, policy=self._policy, team=self._team)
        with watch.measure("score"):
            return self._score(tasks, answers)

    def _score(
        self, tasks: Sequence[DrawnTask], answers: Sequence[list[Generated]]
    ) -> list[LocalRollout]:
        pairs = list(zip(tasks, answers, strict=True))
        try:
            verdicts = self._verifier.score_many(
                [(task.spec, [answer.text for answer in given]) for task, given in pairs],
                rules=known_rules(self._season.answers),
            )
        except RefusedError:
            self._give_up_broken(task.spec for task in tasks)
            raise
        return [
            make_rollout(
                task,
                given,
                judged,
                policy=self._policy,
                reward=self._reward,
                system_prompt=self._season.system_prompt,
            )
            for (task, given), judged in zip(pairs, verdicts, strict=True)
        ]

    def _give_up_broken(self, specs: Iterable[TaskSpec]) -> None:
        """Do not ask the question again that the verifier fails on first."""
        for spec in specs:
            try:
                # Without any text the task would not be made.
                self._verifier.score(spec, [""])
            except RefusedError:
                self._questions.give_up(spec)
                return
