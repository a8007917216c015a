"""Rollouts of other nodes: checked, scored again, and by default used only if informative.

Completions of other nodes are untrusted input, and so is what a sender claims about them: this node
generates the question again from the task spec, and computes the rewards itself.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from node_client.learning.rewards import Reward
from node_client.learning.rollouts import SenderLogprobs, TrainingGroup
from node_client.model.policy import Policy
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.logprobs import decode_logprobs
from swarm_protocol.messages import (
    Completion,
    ExternalRollout,
    FinishReason,
    Rollout,
    RolloutName,
    SeasonInfo,
)
from swarm_tasks.allowlist import is_training_spec
from swarm_tasks.answers import find_rules
from swarm_tasks.generation_errors import GenerationError, NoQuestionError
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import Verifier

DropReason = Literal[
    "own",  # this node made it
    "duplicate",  # it was offered before
    "foreign",  # its spec, number of completions or question class does not fit this season
    "not_decodable",  # this tokenizer cannot represent one of its completions
    "too_long",  # one of its completions is longer than this node trains on
    "unscorable",  # the verifier failed or hung on it, or its node is ignored (MAX_UNGENERATED)
    "not_informative",  # its rewards are all equal, so its advantages are all zero
    "not_drawn",  # usable, but others were chosen (`external_sampling`)
]

# The number of offered rollouts that are remembered, so that none is trained on twice.
REMEMBERED = 4096
# After this many tasks that cannot be generated, a node's rollouts are ignored: it cannot have
# answered such tasks, and one on which the generator hangs costs seconds.
MAX_UNGENERATED = 2


@dataclass(frozen=True)
class CheckedExternals:
    """Groups to train on, and the number of dropped rollouts for each reason."""

    groups: list[TrainingGroup]
    dropped: Counter[DropReason]


class _Scored(NamedTuple):
    """A rollout, its question as this node generated it, and a verdict for each completion."""

    external: ExternalRollout
    question: str
    verdicts: list[Verdict]


@dataclass
class ExternalChecker:
    """A checker of other nodes' rollouts, which turns the usable ones into training groups.

    With `keep_uninformative`, rollouts whose rewards are all equal are usable too. `seen` has the
    names (`node/id`) of the latest REMEMBERED rollouts that passed `_check_origin` or were given to
    `remember`; these rollouts are dropped as duplicates if they are offered again.
    """

    policy: Policy
    verifier: Verifier
    season: SeasonInfo
    node: str
    max_completion_length: int
    reward: Reward
    keep_uninformative: bool = False
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict, init=False)
    _ungenerated: Counter[str] = field(default_factory=Counter, init=False)

    def remember(self, names: Sequence[str]) -> None:
        """Make `check` drop the rollouts with these names (`node/id`) as duplicates.

        These rollouts were checked before, for example by the run that wrote a checkpoint. In older
        checkpoints, a name is an id alone. For such a name, rollouts of all nodes with this id are
        dropped.
        """
        for name in names:
            self.seen[name] = None
            if len(self.seen) > REMEMBERED:
                self.seen.popitem(last=False)

    def check(self, offered: Sequence[ExternalRollout], *, wanted: int) -> CheckedExternals:
        """Return the first `wanted` usable groups, and the number of dropped rollouts by reason.

        There are fewer groups if too few rollouts are usable. Rollouts after the last group are not
        checked. If a rollout that was checked is offered again, it is dropped as a duplicate. This
        does not apply if its task spec or number of completions does not fit this season. Such a
        rollout may belong to the next season, whose rules have not arrived yet.

        The pool offers rollouts in random order, so taking the first usable ones is a random draw.
        If this node prefers rollouts that their senders declared to have both right and wrong
        completions, these are offered first.
        """
        groups: list[TrainingGroup] = []
        dropped: Counter[DropReason] = Counter()
        # Checked when they are taken, and no more are taken than are still wanted.
        candidates = (each for each in offered if self._is_candidate(each, dropped))
        while batch := list(islice(candidates, wanted - len(groups))):
            for scored in self._score(self._regenerate_questions(batch, dropped), dropped):
                made = self._make_group(scored)
                if isinstance(made, TrainingGroup):
                    groups.append(made)
                else:
                    dropped[made] += 1
        return CheckedExternals(groups=groups, dropped=+dropped)

    def _is_candidate(self, external: ExternalRollout, dropped: Counter[DropReason]) -> bool:
        """Return whether a rollout passes `_check_origin`; if not, count it in `dropped`."""
        reason = self._check_origin(external)
        if reason is not None:
            dropped[reason] += 1
        return reason is None

    def _check_origin(self, external: ExternalRollout) -> DropReason | None:
        """Return why a rollout fails the checks that need no verifier, or None if it passes.

        A rollout that passes is remembered, and is a duplicate if it is offered again.
        """
        rollout = external.rollout
        if external.node == self.node:
            return "own"
        # A node may give its rollouts any ids, also those of another node's.
        name = f"{external.node}/{rollout.id}"
        if name in self.seen or rollout.id in self.seen:
            return "duplicate"
        # A rollout that fails these checks is not remembered: it may be of the next season, whose
        # rules have not arrived yet, and be offered again.
        if len(rollout.completions) > self.season.completions or not is_training_spec(
            rollout.task, seed=self.season.seed, tasks=self.season.tasks
        ):
            return "foreign"
        self.remember([name])
        return None

    def _regenerate_questions(
        self, batch: list[ExternalRollout], dropped: Counter[DropReason]
    ) -> list[tuple[ExternalRollout, str]]:
        """Generate all questions in one request; return each usable rollout with its question.

        If a question cannot be generated, its rollout is dropped and the other questions are
        requested again. Also dropped are rollouts of nodes that published too many tasks without a
        question (`_without_ungenerated`), and rollouts whose question class (`question_part`) is
        not the training part. If the verifier fails for another reason, the whole batch is dropped.
        Dropped rollouts are counted in `dropped`.
        """
        while batch := self._without_ungenerated(batch, dropped):
            try:
                questions = self.verifier.questions([each.rollout.task for each in batch])
            except NoQuestionError as problem:
                failed = batch.pop(problem.position)
                dropped[self._explain(problem.refusal, failed)] += 1
            except RefusedError:
                dropped["unscorable"] += len(batch)
                break
            else:
                # A training index may still give a question of the judge's or the held-out set.
                with_questions = zip(batch, questions, strict=True)
                kept = [pair for pair in with_questions if question_part(pair[1]) is Part.TRAINING]
                dropped["foreign"] += len(batch) - len(kept)
                return kept
        return []

    def _without_ungenerated(
        self, batch: list[ExternalRollout], dropped: Counter[DropReason]
    ) -> list[ExternalRollout]:
        """Return the batch without the rollouts of nodes that sent too many bad tasks.

        A task is bad if it could not be generated; MAX_UNGENERATED are too many. Omitted rollouts
        are counted in `dropped`.
        """
        kept = [each for each in batch if self._ungenerated[each.node] < MAX_UNGENERATED]
        dropped["unscorable"] += len(batch) - len(kept)
        return kept

    def _explain(self, refusal: RefusedError, external: ExternalRollout) -> DropReason:
        if isinstance(refusal, GenerationError):
            self._ungenerated[external.node] += 1
        return "unscorable" if refusal.code is ErrorCode.VERIFIER_FAILED else "foreign"

    def _score(
        self, with_questions: Sequence[tuple[ExternalRollout, str]], dropped: Counter[DropReason]
    ) -> list[_Scored]:
        """Score all completions in one request; if it fails, each rollout in its own request.

        A rollout whose own request fails is left out and counted in `dropped`.
        """
        batch = [(external.rollout.task, _texts_of(external)) for external, _ in with_questions]
        rules = find_rules(self.season.answers)
        try:
            verdicts = self.verifier.score_many(batch, rules=rules)
        except RefusedError as refusal:
            if len(with_questions) > 1:
                return [
                    scored for each in with_questions for scored in self._score([each], dropped)
                ]
            dropped[self._explain(refusal, with_questions[0][0])] += 1
            return []
        return [_Scored(*pair, given) for pair, given in zip(with_questions, verdicts, strict=True)]

    def _make_group(self, scored: _Scored) -> TrainingGroup | DropReason:
        """Return the group to train on, or why there is none."""
        external, rollout = scored.external, scored.external.rollout
        if any(verdict.failed for verdict in scored.verdicts):
            return "unscorable"
        rewards = self.reward.rewards(scored.question, _texts_of(external), scored.verdicts)
        if min(rewards) == max(rewards) and not self.keep_uninformative:
            return "not_informative"
        completions = self._encode(rollout)
        if isinstance(completions, str):
            return completions
        same_tokenizer = rollout.tokenizer == self.policy.tokenizer_fingerprint
        return TrainingGroup(
            prompt=self.policy.prompt_ids(scored.question, system_prompt=self.season.system_prompt),
            completions=completions,
            rewards=rewards,
            truncated=[answer.finish_reason == "length" for answer in rollout.completions],
            dataset=rollout.task.dataset,
            external=True,
            source=RolloutName(external.node, rollout.id),
            age_s=external.age_s,
            sender_logprobs=[
                read_sender_logprobs(
                    completion, token_count=len(ids), same_tokenizer=same_tokenizer
                )
                for completion, ids in zip(rollout.completions, completions, strict=True)
            ],
        )

    def _encode(self, rollout: Rollout) -> list[list[int]] | DropReason:
        """Return the tokens of all completions, or why this node cannot train on them."""
        # Small models often give the same answer twice.
        known: dict[tuple[str, FinishReason], list[int]] = {}
        for completion in rollout.completions:
            key = completion.text, completion.finish_reason
            if key not in known:
                ids = self.policy.completion_ids(*key)
                if ids is None:
                    return "not_decodable"
                if len(ids) > self.max_completion_length:
                    return "too_long"
                known[key] = ids
        return [known[each.text, each.finish_reason] for each in rollout.completions]


def read_sender_logprobs(
    completion: Completion, *, token_count: int, same_tokenizer: bool
) -> SenderLogprobs | None:
    """Return the log-probs that came with a completion, or None if it has no readable ones.

    `token_count` is the number of tokens that this node has for the completion's text. The
    log-probs of single tokens are kept only if both nodes have the same tokenizer and the sender
    gave `token_count` log-probs. Otherwise only their sum is kept. Even with the same tokenizer,
    the sender can have a different number of tokens: its model can sample tokens that the tokenizer
    would not choose for the text.
    """
    tokens = decode_logprobs(completion.logprobs) if completion.logprobs else None
    if not tokens:
        return None if completion.logprob is None else SenderLogprobs(completion.logprob)
    if same_tokenizer and len(tokens) == token_count:
        return SenderLogprobs(sum(tokens), tokens)
    return SenderLogprobs(sum(tokens))


def _texts_of(external: ExternalRollout) -> list[str]:
    return [completion.text for completion in external.rollout.completions]
