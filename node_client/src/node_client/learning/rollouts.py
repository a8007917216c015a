"""Rollouts: one question with all its completions (SAPO, arXiv 2509.08721, section 3).

Own and external rollouts are mixed into one training set.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from node_client.model.sampling import Generated
from swarm_protocol.messages import RolloutName, SeasonInfo
from swarm_tasks.answers import find_rules
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask, Verifier


@dataclass(frozen=True)
class SenderLogprobs:
    """The log-probs of a completion at its sender: by token as `tokens`, and their sum as `total`.

    `tokens` is None if the sender gave only the sum, or if this node cannot be sure that it splits
    the text into the sender's tokens (`external.checking.read_sender_logprobs`).
    """

    total: float
    tokens: list[float] | None = None


@dataclass(frozen=True)
class TrainingGroup:
    """One question with L completions as tokens and their rewards in [0, 1]: ready to train on.

    `truncated` marks the completions that reached the length limit; `dataset` is the dataset of the
    question. Three fields are set only in an external group: `source` names the rollout, `age_s` is
    its time in the pool in seconds, and `sender_logprobs` has an entry for each completion, which
    is None if the sender gave no log-probs.
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
    """A rollout of this node: the task, its answers with their verdicts, and the training group."""

    task: DrawnTask
    answers: list[Generated]
    verdicts: list[Verdict]
    group: TrainingGroup

    @property
    def is_informative_for_all(self) -> bool:
        """Whether the rollout has right and wrong answers, and the verifier could score all.

        Such a rollout is informative under any reward that prefers right answers, and other nodes
        can check it.
        """
        solved = {verdict.solved for verdict in self.verdicts}
        return len(solved) == 2 and not any(verdict.failed for verdict in self.verdicts)


def score_answers(
    tasks: Sequence[DrawnTask],
    answers: Sequence[Sequence[Generated]],
    *,
    verifier: Verifier,
    season: SeasonInfo,
) -> list[list[Verdict]]:
    """Return for each task the verdicts on its answers, by the season's answer rules.

    Raises RefusedError when the verifier fails.
    """
    batch = [
        (task.spec, [answer.text for answer in given])
        for task, given in zip(tasks, answers, strict=True)
    ]
    return verifier.score_many(batch, rules=find_rules(season.answers))


@dataclass(frozen=True)
class TrainingSet:
    """The groups of one update, and the numbers of own (`local`) and `external` groups in it."""

    groups: list[TrainingGroup]
    local: int
    external: int

    @property
    def used(self) -> list[RolloutName]:
        """The names of the external rollouts in the set."""
        return [group.source for group in self.groups if group.source is not None]


def assemble_training_set(
    *,
    own: Sequence[TrainingGroup],
    external: Sequence[TrainingGroup],
    size: int,
    rng: random.Random,
) -> TrainingSet:
    """Return a training set of `size` groups (I + J): all external groups, plus own groups.

    The own groups are drawn uniformly, whether or not they are informative. They fill all places
    that external groups leave free. So the set is smaller than `size` only if there are too few own
    groups. `external` must not have more than `size` groups.
    """
    others = rng.sample(external, len(external))
    mine = rng.sample(own, min(size - len(others), len(own)))
    return TrainingSet(groups=[*mine, *others], local=len(mine), external=len(others))
