"""Rollouts of other nodes: checked, scored again, and kept only if they teach something.

Completions of others are hostile input, and nothing that a peer says about its rollout is
believed: the question and the rewards are made again here, from the task spec alone.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from node_client.learning.rewards import Reward
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.sender import read_sender
from node_client.model.policy import Policy
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import ExternalRollout, Rollout, RolloutName, SeasonInfo
from swarm_tasks.allowlist import check_training_spec
from swarm_tasks.answers import known_rules
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.verifier import UnmadeError, Verifier

DropReason = Literal[
    "own",  # this node made it
    "duplicate",  # it was offered before
    "foreign",  # its spec, or its number of completions, is not of this season
    "not_decodable",  # this tokenizer cannot represent one of its completions
    "too_long",  # one of its completions is longer than this node trains on
    "unscorable",  # the verifier failed or hung on it
    "not_informative",  # its rewards are all equal, so its advantages are all zero
    "not_drawn",  # usable, but others took the places (`external_sampling`)
]

# How many offered rollouts are remembered, so that none is trained on twice.
REMEMBERED = 4096
# After this many tasks that cannot be made, a node's rollouts are ignored: it cannot have answered
# such tasks, and one on which the generator hangs costs seconds.
MOST_UNMADE = 2


@dataclass(frozen=True)
class JudgedExternals:
    """Groups that can be trained on, and how many rollouts were dropped, by reason."""

    groups: list[TrainingGroup]
    dropped: Counter[DropReason]


class _DroppedError(Exception):
    """A rollout cannot be used, for this reason."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason)
        self.reason: DropReason = reason


class ExternalJudge:
    """Makes training groups of other nodes' rollouts."""

    def __init__(
        self,
        *,
        policy: Policy,
        verifier: Verifier,
        season: SeasonInfo,
        node: str,
        max_completion_length: int,
        reward: Reward,
        keep_uninformative: bool = False,
    ) -> None:
        self._policy = policy
        self._verifier = verifier
        self._season = season
        self._node = node
        self._max_completion_length = max_completion_length
        self._reward = reward
        self._keep_uninformative = keep_uninformative
        self._seen: deque[str] = deque(maxlen=REMEMBERED)
        self._unmade: Counter[str] = Counter()

    @property
    def seen(self) -> list[str]:
        """The latest rollouts that were judged, each as `node/id`, for a checkpoint."""
        return list(self._seen)

    def remember(self, names: Sequence[str]) -> None:
        """Take these rollouts as judged, such as those of a run that is resumed.

        A name without a node, as older checkpoints have them, stands for anybody's rollout.
        """
        self._seen.extend(names)

    def judge(self, offered: Sequence[ExternalRollout], *, wanted: int) -> JudgedExternals:
        """Return up to `wanted` usable groups, and count why the others before them were not.

        The pool offers rollouts in random order, with those that their senders declared informative
        first if this node prefers them. So the first usable ones are a uniform sample of all usable
        ones, or of the declared. Those after them are not looked at.
        """
        groups: list[TrainingGroup] = []
        dropped: Counter[DropReason] = Counter()
        for external in offered:
            if len(groups) == wanted:
                break
            try:
                groups.append(self._make_group(external))
            except _DroppedError as refusal:
                dropped[refusal.reason] += 1
        return JudgedExternals(groups=groups, dropped=dropped)

    def _make_group(self, external: ExternalRollout) -> TrainingGroup:
        """Check one rollout, the cheap checks first. Raises _DroppedError."""
        rollout = external.rollout
        if external.node == self._node:
            raise _DroppedError("own")
        # A node may give its rollouts any ids, also those of somebody else's.
        name = f"{external.node}/{rollout.id}"
        if name in self._seen or rollout.id in self._seen:
            raise _DroppedError("duplicate")
        # Before it is remembered: a rollout of the next season may come before its news.
        self._check_season(rollout)
        self._seen.append(name)
        if self._unmade[external.node] == MOST_UNMADE:
            raise _DroppedError("unscorable")
        question, rewards = self._score(external)
        completions = self._encode(rollout)
        return TrainingGroup(
            prompt=self._policy.prompt_ids(question, system_prompt=self._season.system_prompt),
            completions=completions,
            rewards=rewards,
            truncated=[answer.finish_reason == "length" for answer in rollout.completions],
            dataset=rollout.task.dataset,
            external=True,
            source=RolloutName(external.node, rollout.id),
            age_s=external.age_s,
            told=[
                read_sender(
                    completion,
                    token_count=len(ids),
                    same_tokenizer=rollout.tokenizer == self._policy.tokenizer_fingerprint,
                )
                for completion, ids in zip(rollout.completions, completions, strict=True)
            ],
        )

    def _check_season(self, rollout: Rollout) -> None:
        if len(rollout.completions) > self._season.completions:
            raise _DroppedError("foreign")
        try:
            check_training_spec(rollout.task, seed=self._season.seed, tasks=self._season.tasks)
        except RefusedError:
            raise _DroppedError("foreign") from None

    def _encode(self, rollout: Rollout) -> list[list[int]]:
        encoded: list[list[int]] = []
        for completion in rollout.completions:
            ids = self._policy.completion_ids(completion.text, completion.finish_reason)
            if ids is None:
                raise _DroppedError("not_decodable")
            if len(ids) > self._max_completion_length:
                raise _DroppedError("too_long")
            encoded.append(ids)
        return encoded

    def _score(self, external: ExternalRollout) -> tuple[str, list[float]]:
        """Make the question again and return it with every completion's reward."""
        rollout = external.rollout
        texts = [completion.text for completion in rollout.completions]
        try:
            question = self._verifier.question(rollout.task)
            rules = known_rules(self._season.answers)
            verdicts = self._verifier.score(rollout.task, texts, rules=rules)
        except UnmadeError:
            self._unmade[external.node] += 1
            raise _DroppedError("unscorable") from None
        except RefusedError as refusal:
            failed = refusal.code is ErrorCode.VERIFIER_FAILED
            raise _DroppedError("unscorable" if failed else "foreign") from None
        # A training index may still make a question that the judge or the held-out set owns.
        if question_part(question) is not Part.TRAINING:
            raise _DroppedError("foreign")
        if any(verdict.failed for verdict in verdicts):
            raise _DroppedError("unscorable")
        rewards = self._reward.rewards(question, texts, verdicts)
        if min(rewards) == max(rewards) and not self._keep_uninformative:
            raise _DroppedError("not_informative")
        return question, rewards
