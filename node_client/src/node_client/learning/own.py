"""A node's own rollouts: questions are drawn, answered several times each, and scored."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from node_client.learning.questions.choice import Questions
from node_client.learning.rewards import Reward
from node_client.learning.rollouts import LocalRollout, TrainingGroup, score_answers
from node_client.learning.team import SEED_STRIDE
from node_client.learning.team_messages import GenerateAnswers, TeamLeader
from node_client.learning.timing import StepTimer
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import StepPlan, TrainConfig
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonInfo, TaskSpec
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask, Verifier


@dataclass(frozen=True)
class RolloutMaker:
    """Makes a node's own rollouts: draws the questions, and generates and scores the answers."""

    policy: Policy
    verifier: Verifier
    season: SeasonInfo
    config: TrainConfig
    plan: StepPlan
    questions: Questions
    reward: Reward
    leader: TeamLeader

    def make(self, *, wanted: int, seed: int, timer: StepTimer) -> list[LocalRollout]:
        """Return new rollouts: of one batch of questions, or of several with dynamic sampling.

        Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2) generates batches until at least
        `wanted` rollouts are informative (`TrainingGroup.informative`), but at most
        `dynamic_batches` batches. DAPO has no such limit. Without it, a model that solves nothing,
        or everything, would never finish a step. Raises RefusedError when the verifier fails, and
        the errors of `TeamLeader.generate`.
        """
        rollouts: list[LocalRollout] = []
        batches = self.config.dynamic_batches if self.config.resampling == "dynamic" else 1
        for number in range(batches):
            rollouts += self._answer_batch(seed + number * SEED_STRIDE, timer)
            if sum(rollout.group.informative for rollout in rollouts) >= wanted:
                break
        return rollouts

    def _answer_batch(self, seed: int, timer: StepTimer) -> list[LocalRollout]:
        """Draw a batch of questions, answer each several times, and return the scored rollouts."""
        with timer.measure("score"):
            tasks = self.questions.draw(self.plan.batch)
        with timer.measure("generate"):
            answers = self.leader.generate(
                GenerateAnswers(
                    questions=[task.question for task in tasks],
                    completions=self.plan.completions,
                    max_new_tokens=self.plan.max_completion_length,
                    temperature=self.config.temperature,
                    top_p=self.config.top_p,
                    system_prompt=self.season.system_prompt,
                    seed=seed,
                )
            )
        with timer.measure("score"):
            return self._score(tasks, answers)

    def _score(
        self, tasks: Sequence[DrawnTask], answers: Sequence[list[Generated]]
    ) -> list[LocalRollout]:
        try:
            verdicts = score_answers(tasks, answers, verifier=self.verifier, season=self.season)
        except RefusedError:
            self._exclude_broken(task.spec for task in tasks)
            raise
        return [
            self._make_rollout(*scored) for scored in zip(tasks, answers, verdicts, strict=True)
        ]

    def _make_rollout(
        self, task: DrawnTask, answers: list[Generated], verdicts: list[Verdict]
    ) -> LocalRollout:
        """Return the rollout of an answered task, with its rewards."""
        texts = [answer.text for answer in answers]
        group = TrainingGroup(
            prompt=self.policy.prompt_ids(task.question, system_prompt=self.season.system_prompt),
            completions=[answer.token_ids for answer in answers],
            rewards=self.reward.rewards(task.question, texts, verdicts),
            truncated=[answer.finish_reason == "length" for answer in answers],
            dataset=task.spec.dataset,
        )
        return LocalRollout(task=task, answers=answers, verdicts=verdicts, group=group)

    def _exclude_broken(self, specs: Iterable[TaskSpec]) -> None:
        """Find the first question on which the verifier fails, and never ask it again."""
        for spec in specs:
            try:
                # Without any text the task would not be generated.
                self.verifier.score(spec, [""])
            except RefusedError:
                self.questions.exclude(spec)
                return


def prefer_informative(
    groups: Sequence[TrainingGroup], *, count: int, rng: random.Random
) -> list[TrainingGroup]:
    """Draw up to `count` groups without replacement; return the informative ones first.

    Other groups are drawn only if fewer than `count` groups are informative. Within each kind, all
    groups have the same chance.
    """
    shuffled = rng.sample(groups, len(groups))
    return sorted(shuffled, key=lambda group: not group.informative)[:count]
