"""Rollouts of this node: made, scored, and mixed with others' into one training set.

A rollout is one question with all its completions (SAPO, arXiv 2509.08721, section 3).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from node_client.learning.rewards import Reward
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from swarm_protocol.messages import RolloutName
from swarm_tasks.verifier import DrawnTask, Verdict


@dataclass(frozen=True)
class SenderLogprobs:
    """The log-prob of a completion at its sender, and by token if both have the same tokens."""

    total: float
    tokens: list[float] | None = None


@dataclass(frozen=True)
class TrainingGroup:
    """One question with L completions as tokens and their rewards in [0, 1]: ready to train on.

    `truncated` marks the completions that ran into the length limit instead of stopping; `dataset`
    is the question's. Of an external group, `source` names the rollout, `age_s` is how long it
    was in the pool, and `told` has what its maker said about each completion's likelihood, or None.
    """

    prompt: list[int]
    completions: list[list[int]]
    rewards: list[float]
    truncated: list[bool]
    dataset: str = ""
    external: bool = False
    source: RolloutName | None = None
    age_s: float = 0.0
    sender_logprobs: Sequence[SenderLogprobs | None] = ()

    @property
    def informative(self) -> bool:
        """Whether the rewards differ, so that the advantages are not all zero."""
        return max(self.rewards) > min(self.rewards)


@dataclass(frozen=True)
class LocalRollout:
    """A rollout that this node made: the task, what it answered and how that was judged."""

    task: DrawnTask
    answers: list[Generated]
    verdicts: list[Verdict]
    group: TrainingGroup

    @property
    def teaches_all(self) -> bool:
        """Whether there are right and wrong answers, all of which could be scored.

        Then it is informative whatever reward a receiver trains with, and others can check it.
        """
        rights = {verdict.solved for verdict in self.verdicts}
        return len(rights) == 2 and not any(verdict.failed for verdict in self.verdicts)


@dataclass(frozen=True)
class TrainingSet:
    """The groups of one update, and how many of them came from here and from elsewhere."""

    groups: list[TrainingGroup]
    local: int
    external: int

    @property
    def used(self) -> list[RolloutName]:
        """The names of the rollouts of other nodes."""
        return [group.source for group in self.groups if group.source is not None]


def make_rollout(
    task: DrawnTask,
    answers: list[Generated],
    verdicts: list[Verdict],
    *,
    policy: Policy,
    reward: Reward,
    system_prompt: str,
) -> LocalRollout:
    """Return the rollout of a task that this node answered, with its rewards."""
    group = TrainingGroup(
        prompt=policy.prompt_ids(task.question, system_prompt=system_prompt),
        completions=[answer.token_ids for answer in answers],
        rewards=reward.rewards(task.question, [answer.text for answer in answers], verdicts),
        truncated=[answer.finish_reason == "length" for answer in answers],
        dataset=task.spec.dataset,
    )
    return LocalRollout(task=task, answers=answers, verdicts=verdicts, group=group)


def assemble_training_set(
    *,
    own: Sequence[TrainingGroup],
    external: Sequence[TrainingGroup],
    local_count: int,
    external_count: int,
    chance: random.Random,
) -> TrainingSet:
    """Mix I own and J external groups, each drawn uniformly.

    Own groups are not filtered. Missing external ones are replaced by spare own ones, so the set
    keeps its size while there are any.
    """
    others = chance.sample(external, min(external_count, len(external)))
    wanted = local_count + external_count - len(others)
    mine = chance.sample(own, min(wanted, len(own)))
    return TrainingSet(groups=[*mine, *others], local=len(mine), external=len(others))
