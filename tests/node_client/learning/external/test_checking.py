"""Rollouts of other nodes are made and scored again here; unusable ones are counted by reason."""

from collections.abc import Sequence

import msgspec
import pytest

from node_client.learning.external.checking import (
    MAX_UNGENERATED,
    REMEMBERED,
    DropReason,
    ExternalChecker,
    read_sender_logprobs,
)
from node_client.learning.rewards import BinaryReward
from node_client.learning.rollouts import SenderLogprobs
from node_client.model.policy import Policy
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.logprobs import encode_logprobs
from swarm_protocol.messages import Completion, ExternalRollout, RolloutName, TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import StepResult
from swarm_tasks.generation_errors import GenerationError, NoQuestionError
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.pipe import Draw, GeneratedTask, Job
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    SEED,
    SUMS,
    BorrowingVerifier,
    FailingVerifier,
    external_sum,
    toy_policy,
    toy_season,
)
from tests.tasks.faulty import faulty_verifier

MIXED = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")


@pytest.fixture(scope="module")
def policy() -> Policy:
    return toy_policy()


def make_checker(
    policy: Policy, verifier: Verifier, *, keep_uninformative: bool = False
) -> ExternalChecker:
    return ExternalChecker(
        policy=policy,
        verifier=verifier,
        season=toy_season(),
        node="here",
        max_completion_length=16,
        reward=BinaryReward(),
        keep_uninformative=keep_uninformative,
    )


@pytest.fixture
def checker(policy: Policy, verifier: Verifier) -> ExternalChecker:
    return make_checker(policy, verifier)


def assert_dropped(checker: ExternalChecker, external: ExternalRollout, reason: DropReason) -> None:
    checked = checker.check([external], wanted=1)
    assert checked.groups == []
    assert checked.dropped == {reason: 1}


def with_task(external: ExternalRollout, **changes: object) -> ExternalRollout:
    """Return the rollout with fields of its task spec replaced."""
    task = msgspec.structs.replace(external.rollout.task, **changes)
    rollout = msgspec.structs.replace(external.rollout, task=task)
    return msgspec.structs.replace(external, rollout=rollout)


def test_usable_rollout_is_scored_on_this_node(
    checker: ExternalChecker, verifier: Verifier, policy: Policy
) -> None:
    external = external_sum(verifier, MIXED)
    checked = checker.check([external], wanted=1)
    (group,) = checked.groups
    assert group.rewards == [1, 0, 0, 0]
    assert group.source == RolloutName(external.node, external.rollout.id)
    assert group.prompt == policy.prompt_ids(verifier.question(external.rollout.task))
    assert not checked.dropped


def test_stopped_completions_of_others_end_with_the_end_token(
    checker: ExternalChecker, verifier: Verifier, policy: Policy
) -> None:
    (group,) = checker.check([external_sum(verifier, MIXED)], wanted=1).groups
    assert {completion[-1] for completion in group.completions} == policy._tokenizer.ends


def test_log_probs_of_a_sender_with_the_same_tokenizer_are_in_the_group(
    checker: ExternalChecker, verifier: Verifier, policy: Policy
) -> None:
    external = external_sum(verifier, MIXED)
    same = msgspec.structs.replace(external.rollout, tokenizer=policy.tokenizer_fingerprint)
    lengths = [
        len(policy.completion_ids(each.text, each.finish_reason) or []) for each in same.completions
    ]
    sent = [
        msgspec.structs.replace(each, logprobs=encode_logprobs([-0.5] * length))
        for each, length in zip(same.completions, lengths, strict=True)
    ]
    same = msgspec.structs.replace(same, completions=sent)
    (group,) = checker.check([msgspec.structs.replace(external, rollout=same)], wanted=1).groups
    assert group.external
    assert group.sender_logprobs == [
        SenderLogprobs(-0.5 * length, [-0.5] * length) for length in lengths
    ]


def test_own_rollout_is_dropped(checker: ExternalChecker, verifier: Verifier) -> None:
    assert_dropped(checker, external_sum(verifier, MIXED, node="here"), "own")


def test_rollout_is_used_only_once(checker: ExternalChecker, verifier: Verifier) -> None:
    external = external_sum(verifier, MIXED)
    assert len(checker.check([external], wanted=1).groups) == 1
    assert_dropped(checker, external, "duplicate")


def test_copied_id_does_not_exclude_the_original_rollout(
    checker: ExternalChecker, verifier: Verifier
) -> None:
    honest = external_sum(verifier, MIXED)
    copied = msgspec.structs.replace(honest, node="a-thief")
    assert len(checker.check([copied, honest], wanted=2).groups) == 2


@pytest.mark.parametrize("name", ["elsewhere/rollout-elsewhere-0", "rollout-elsewhere-0"])
def test_rollout_used_before_a_restart_is_a_duplicate(
    checker: ExternalChecker, verifier: Verifier, name: str
) -> None:
    checker.remember([name])
    assert_dropped(checker, external_sum(verifier, MIXED), "duplicate")


def test_oldest_rollouts_are_forgotten_after_many_checks(checker: ExternalChecker) -> None:
    names = [f"elsewhere/{number}" for number in range(REMEMBERED + 2)]
    checker.remember(names)
    assert list(checker.seen) == names[2:]


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": SEED + 1},
        {"config": SUMS | {"max_digits": 2}},
        {"dataset": "countdown", "config": {}},
    ],
    ids=["another season", "config outside the season", "dataset off the allow-list"],
)
def test_task_that_is_not_of_the_season_is_foreign(
    checker: ExternalChecker, verifier: Verifier, changes: dict[str, object]
) -> None:
    assert_dropped(checker, with_task(external_sum(verifier, MIXED), **changes), "foreign")


def test_rollout_received_before_its_season_is_not_remembered(
    checker: ExternalChecker, verifier: Verifier
) -> None:
    early = with_task(external_sum(verifier, MIXED), seed=SEED + 1)
    checker.check([early], wanted=1)
    assert not checker.seen


def test_judge_question_is_foreign(checker: ExternalChecker, verifier: Verifier) -> None:
    assert_dropped(checker, external_sum(verifier, MIXED, part=Part.JUDGE), "foreign")


def test_training_index_of_a_judge_question_is_foreign(
    checker: ExternalChecker, verifier: Verifier
) -> None:
    external = external_sum(verifier, MIXED)
    task = external.rollout.task
    nearby = (msgspec.structs.replace(task, index=index) for index in range(1000))
    leak = next(t for t in nearby if question_part(verifier.question(t)) is Part.JUDGE)
    assert_dropped(checker, with_task(external, index=leak.index), "foreign")


def test_more_completions_than_the_season_requests_are_foreign(
    checker: ExternalChecker, verifier: Verifier
) -> None:
    assert_dropped(checker, external_sum(verifier, [*MIXED, "5"]), "foreign")


def test_text_that_the_tokenizer_cannot_represent_is_not_decodable(
    checker: ExternalChecker, verifier: Verifier
) -> None:
    assert_dropped(checker, external_sum(verifier, [*MIXED[:3], "<eos>"]), "not_decodable")


def test_long_completion_is_too_long(checker: ExternalChecker, verifier: Verifier) -> None:
    assert_dropped(checker, external_sum(verifier, [*MIXED[:3], "x" * 16]), "too_long")


def test_rollout_whose_task_cannot_be_made_is_unscorable(
    policy: Policy, verifier: Verifier
) -> None:
    external = external_sum(verifier, MIXED)
    checker = make_checker(policy, FailingVerifier(verifier, external.rollout.task))
    assert_dropped(checker, external, "unscorable")


class HangingVerifier(BorrowingVerifier):
    """Cannot make any question, and counts the calls."""

    calls = 0

    def questions(self, specs: Sequence[TaskSpec]) -> list[str]:
        self.calls += 1
        hung = GenerationError(ErrorCode.VERIFIER_FAILED, "no answer within 5 s")
        raise NoQuestionError(len(specs) - 1, hung)


def test_node_whose_tasks_cannot_be_made_is_skipped_after_some_attempts(
    policy: Policy, verifier: Verifier
) -> None:
    hanging = HangingVerifier(verifier)
    checker = make_checker(policy, hanging)
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(5)]
    checked = checker.check(offered, wanted=4)
    assert checked.dropped == {"unscorable": 5}
    assert hanging.calls == MAX_UNGENERATED


def test_task_that_cannot_be_made_does_not_affect_other_rollouts(
    policy: Policy, verifier: Verifier
) -> None:
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(4)]
    checker = make_checker(policy, FailingVerifier(verifier, offered[1].rollout.task))
    checked = checker.check(offered, wanted=4)
    assert [group.source for group in checked.groups] == [
        RolloutName(each.node, each.rollout.id) for each in (offered[0], *offered[2:])
    ]
    assert checked.dropped == {"unscorable": 1}


class CountingVerifier(BorrowingVerifier):
    """Counts the requests to the child."""

    def __init__(self, lender: Verifier) -> None:
        super().__init__(lender)
        self.requests = 0

    def _make(self, draws: list[Draw]) -> list[GeneratedTask | RefusedError]:
        self.requests += 1
        return super()._make(draws)

    def _score_jobs(
        self, jobs: list[Job], rules: AnswerRules, *, until: float, text_s: float
    ) -> list[StepResult]:
        self.requests += 1
        return super()._score_jobs(jobs, rules, until=until, text_s=text_s)


def test_rollouts_are_made_and_scored_together(policy: Policy, verifier: Verifier) -> None:
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(8)]
    counting = CountingVerifier(verifier)
    assert len(make_checker(policy, counting).check(offered, wanted=8).groups) == 8
    assert counting.requests == 2


def test_hanging_text_affects_only_its_own_rollout(policy: Policy) -> None:
    with faulty_verifier(deadline_s=0.5) as verifier:
        offered = [
            external_sum(verifier, texts, counter=counter)
            for counter, texts in enumerate([MIXED, (*MIXED[:3], "please hang"), MIXED])
        ]
        checked = make_checker(policy, verifier).check(offered, wanted=3)
    assert len(checked.groups) == 2
    assert checked.dropped == {"unscorable": 1}


@pytest.mark.parametrize("text", ["<answer>{sum}</answer>", "wrong"])
def test_equal_rewards_are_not_informative(
    checker: ExternalChecker, verifier: Verifier, text: str
) -> None:
    assert_dropped(checker, external_sum(verifier, [text] * 4), "not_informative")


def test_uninformative_rollouts_can_be_kept(policy: Policy, verifier: Verifier) -> None:
    checker = make_checker(policy, verifier, keep_uninformative=True)
    checked = checker.check([external_sum(verifier, ["wrong"] * 4)], wanted=1)
    assert [group.rewards for group in checked.groups] == [[0, 0, 0, 0]]
    assert not checked.dropped


def test_no_more_candidates_are_checked_than_wanted(
    checker: ExternalChecker, verifier: Verifier
) -> None:
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(3)]
    assert len(checker.check(offered, wanted=1).groups) == 1
    later = checker.check(offered, wanted=3)
    assert len(later.groups) == 2
    assert later.dropped == {"duplicate": 1}


PACKED = encode_logprobs([-0.5, -1.0, -0.25])


@pytest.mark.parametrize(
    ("logprobs", "logprob", "token_count", "same_tokenizer", "expected"),
    [
        (PACKED, None, 3, True, SenderLogprobs(-1.75, [-0.5, -1.0, -0.25])),
        # Only their sum is used if the tokens differ.
        (PACKED, None, 3, False, SenderLogprobs(-1.75)),
        (PACKED, None, 4, True, SenderLogprobs(-1.75)),
        (PACKED, None, 2, True, SenderLogprobs(-1.75)),
        (None, -7.5, 3, True, SenderLogprobs(-7.5)),
        # Undecodable ones count as missing.
        ("AAA", -2.0, 3, True, SenderLogprobs(-2.0)),
        *((text, None, 3, True, None) for text in (None, "", "AAA", "AA==")),
    ],
)
def test_readable_log_probs_of_the_sender_are_used(
    logprobs: str | None,
    logprob: float | None,
    token_count: int,
    same_tokenizer: bool,
    expected: SenderLogprobs | None,
) -> None:
    completion = Completion("4", "stop", logprobs=logprobs, logprob=logprob)
    found = read_sender_logprobs(completion, token_count=token_count, same_tokenizer=same_tokenizer)
    assert found == expected
