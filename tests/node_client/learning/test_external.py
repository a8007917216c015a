"""Rollouts of other nodes are made and scored again here; what cannot be used is counted."""

from collections.abc import Sequence

import msgspec
import pytest

from node_client.learning.external import MOST_UNMADE, REMEMBERED, DropReason, ExternalJudge
from node_client.learning.rewards import Binary
from node_client.learning.sender import SenderLogprobs
from node_client.model.policy import Policy
from swarm_protocol.errors import ErrorCode
from swarm_protocol.logprobs import encode_logprobs
from swarm_protocol.messages import ExternalRollout, RolloutName, TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Trial
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.limits import Limits
from swarm_tasks.pipe import Draw, Draws, Job, Sample, Wanted
from swarm_tasks.unmade import UnmadeError, UnposedError
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    SEED,
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


def make_judge(policy: Policy, verifier: Verifier) -> ExternalJudge:
    return ExternalJudge(
        policy=policy,
        verifier=verifier,
        season=toy_season(),
        node="here",
        max_completion_length=16,
        reward=Binary(),
    )


@pytest.fixture
def judge(policy: Policy, verifier: Verifier) -> ExternalJudge:
    return make_judge(policy, verifier)


def assert_dropped(judge: ExternalJudge, external: ExternalRollout, reason: DropReason) -> None:
    judged = judge.judge([external], wanted=1)
    assert judged.groups == []
    assert judged.dropped == {reason: 1}


def with_task(external: ExternalRollout, **changes: object) -> ExternalRollout:
    """Return the rollout with fields of its task spec replaced."""
    task = msgspec.structs.replace(external.rollout.task, **changes)
    rollout = msgspec.structs.replace(external.rollout, task=task)
    return msgspec.structs.replace(external, rollout=rollout)


def test_usable_rollout_gets_its_rewards_here(
    judge: ExternalJudge, verifier: Verifier, policy: Policy
) -> None:
    external = external_sum(verifier, MIXED)
    judged = judge.judge([external], wanted=1)
    (group,) = judged.groups
    assert group.rewards == [1, 0, 0, 0]
    assert group.source == RolloutName(external.node, external.rollout.id)
    assert group.prompt == policy.prompt_ids(verifier.question(external.rollout.task))
    assert not judged.dropped


def test_completions_of_others_end_with_eos_where_they_stopped(
    judge: ExternalJudge, verifier: Verifier, policy: Policy
) -> None:
    (group,) = judge.judge([external_sum(verifier, MIXED)], wanted=1).groups
    assert {completion[-1] for completion in group.completions} == policy._tokenizer.ends


def test_log_probs_of_a_sender_with_the_same_tokenizer_come_with_the_group(
    judge: ExternalJudge, verifier: Verifier, policy: Policy
) -> None:
    external = external_sum(verifier, MIXED)
    same = msgspec.structs.replace(external.rollout, tokenizer=policy.tokenizer_fingerprint)
    lengths = [
        len(policy.completion_ids(each.text, each.finish_reason) or []) for each in same.completions
    ]
    told = [
        msgspec.structs.replace(each, logprobs=encode_logprobs([-0.5] * length))
        for each, length in zip(same.completions, lengths, strict=True)
    ]
    same = msgspec.structs.replace(same, completions=told)
    (group,) = judge.judge([msgspec.structs.replace(external, rollout=same)], wanted=1).groups
    assert group.external
    assert group.told == [SenderLogprobs(-0.5 * length, [-0.5] * length) for length in lengths]


def test_own_rollout_is_dropped(judge: ExternalJudge, verifier: Verifier) -> None:
    assert_dropped(judge, external_sum(verifier, MIXED, node="here"), "own")


def test_rollout_is_used_once(judge: ExternalJudge, verifier: Verifier) -> None:
    external = external_sum(verifier, MIXED)
    assert len(judge.judge([external], wanted=1).groups) == 1
    assert_dropped(judge, external, "duplicate")


def test_a_copied_id_does_not_keep_out_the_rollout_that_it_was_copied_from(
    judge: ExternalJudge, verifier: Verifier
) -> None:
    honest = external_sum(verifier, MIXED)
    copied = msgspec.structs.replace(honest, node="a-thief")
    assert len(judge.judge([copied, honest], wanted=2).groups) == 2


@pytest.mark.parametrize("name", ["elsewhere/rollout-elsewhere-0", "rollout-elsewhere-0"])
def test_rollout_that_was_used_before_a_restart_is_a_duplicate(
    judge: ExternalJudge, verifier: Verifier, name: str
) -> None:
    judge.remember([name])
    assert_dropped(judge, external_sum(verifier, MIXED), "duplicate")


def test_the_oldest_are_forgotten_when_many_were_judged(judge: ExternalJudge) -> None:
    names = [f"elsewhere/{number}" for number in range(REMEMBERED + 2)]
    judge.remember(names)
    assert judge.seen == names[2:]


def test_rollout_of_another_season_is_foreign(judge: ExternalJudge, verifier: Verifier) -> None:
    assert_dropped(judge, with_task(external_sum(verifier, MIXED), seed=SEED + 1), "foreign")


def test_a_rollout_that_came_before_the_news_of_its_season_is_not_remembered(
    judge: ExternalJudge, verifier: Verifier
) -> None:
    early = with_task(external_sum(verifier, MIXED), seed=SEED + 1)
    judge.judge([early], wanted=1)
    assert judge.seen == []


def test_config_outside_the_season_is_foreign(judge: ExternalJudge, verifier: Verifier) -> None:
    external = external_sum(verifier, MIXED)
    config = {**external.rollout.task.config, "max_digits": 2}
    assert_dropped(judge, with_task(external, config=config), "foreign")


def test_dataset_off_the_allow_list_is_foreign(judge: ExternalJudge, verifier: Verifier) -> None:
    external = external_sum(verifier, MIXED)
    assert_dropped(judge, with_task(external, dataset="countdown", config={}), "foreign")


def test_judge_question_is_foreign(judge: ExternalJudge, verifier: Verifier) -> None:
    assert_dropped(judge, external_sum(verifier, MIXED, part=Part.JUDGE), "foreign")


def test_training_index_of_a_judge_question_is_foreign(
    judge: ExternalJudge, verifier: Verifier
) -> None:
    external = external_sum(verifier, MIXED)
    task = external.rollout.task
    nearby = (msgspec.structs.replace(task, index=index) for index in range(1000))
    leak = next(t for t in nearby if question_part(verifier.question(t)) is Part.JUDGE)
    assert_dropped(judge, with_task(external, index=leak.index), "foreign")


def test_more_completions_than_the_season_asks_for_are_foreign(
    judge: ExternalJudge, verifier: Verifier
) -> None:
    assert_dropped(judge, external_sum(verifier, [*MIXED, "5"]), "foreign")


def test_text_that_the_tokenizer_cannot_represent_is_not_decodable(
    judge: ExternalJudge, verifier: Verifier
) -> None:
    assert_dropped(judge, external_sum(verifier, [*MIXED[:3], "<eos>"]), "not_decodable")


def test_long_completion_is_too_long(judge: ExternalJudge, verifier: Verifier) -> None:
    assert_dropped(judge, external_sum(verifier, [*MIXED[:3], "x" * 16]), "too_long")


def test_rollout_whose_task_cannot_be_made_is_unscorable(
    policy: Policy, verifier: Verifier
) -> None:
    external = external_sum(verifier, MIXED)
    judge = make_judge(policy, FailingVerifier(verifier, external.rollout.task))
    assert_dropped(judge, external, "unscorable")


class HangingVerifier(BorrowingVerifier):
    """Cannot make any question, and counts how many it was asked for."""

    asked = 0

    def questions(self, specs: Sequence[TaskSpec]) -> list[str]:
        self.asked += 1
        hung = UnmadeError(ErrorCode.VERIFIER_FAILED, "no answer within 5 s")
        raise UnposedError(len(specs) - 1, hung)


def test_a_node_whose_tasks_cannot_be_made_is_not_looked_at_again(
    policy: Policy, verifier: Verifier
) -> None:
    hanging = HangingVerifier(verifier)
    judge = make_judge(policy, hanging)
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(5)]
    judged = judge.judge(offered, wanted=4)
    assert judged.dropped == {"unscorable": 5}
    assert hanging.asked == MOST_UNMADE


def test_a_task_that_cannot_be_made_costs_no_other_rollout(
    policy: Policy, verifier: Verifier
) -> None:
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(4)]
    judge = make_judge(policy, FailingVerifier(verifier, offered[1].rollout.task))
    judged = judge.judge(offered, wanted=4)
    assert [group.source for group in judged.groups] == [
        RolloutName(each.node, each.rollout.id) for each in (offered[0], *offered[2:])
    ]
    assert judged.dropped == {"unscorable": 1}


class CountingVerifier(BorrowingVerifier):
    """Counts the requests to the child."""

    def __init__(self, lender: Verifier) -> None:
        super().__init__(lender)
        self.requests = 0

    def _make(self, request: Draw | Draws | Sample, wanted: type[Wanted], *, steps: int) -> Wanted:
        self.requests += 1
        return super()._make(request, wanted, steps=steps)

    def _score_jobs(self, jobs: list[Job], rules: AnswerRules, limits: Limits) -> list[Trial]:
        self.requests += 1
        return super()._score_jobs(jobs, rules, limits)


def test_rollouts_are_made_and_scored_together(policy: Policy, verifier: Verifier) -> None:
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(8)]
    counting = CountingVerifier(verifier)
    assert len(make_judge(policy, counting).judge(offered, wanted=8).groups) == 8
    assert counting.requests == 2


def test_a_text_that_hangs_costs_its_own_rollout_only(policy: Policy) -> None:
    with faulty_verifier(deadline_s=0.5) as verifier:
        offered = [
            external_sum(verifier, texts, counter=counter)
            for counter, texts in enumerate([MIXED, (*MIXED[:3], "please hang"), MIXED])
        ]
        judged = make_judge(policy, verifier).judge(offered, wanted=3)
    assert len(judged.groups) == 2
    assert judged.dropped == {"unscorable": 1}


@pytest.mark.parametrize("text", ["<answer>{sum}</answer>", "wrong"])
def test_equal_rewards_are_not_informative(
    judge: ExternalJudge, verifier: Verifier, text: str
) -> None:
    assert_dropped(judge, external_sum(verifier, [text] * 4), "not_informative")


def test_uninformative_rollouts_can_be_kept(policy: Policy, verifier: Verifier) -> None:
    judge = ExternalJudge(
        policy=policy,
        verifier=verifier,
        season=toy_season(),
        node="here",
        max_completion_length=16,
        reward=Binary(),
        keep_uninformative=True,
    )
    judged = judge.judge([external_sum(verifier, ["wrong"] * 4)], wanted=1)
    assert [group.rewards for group in judged.groups] == [[0, 0, 0, 0]]
    assert not judged.dropped


def test_nothing_is_looked_at_beyond_what_is_wanted(
    judge: ExternalJudge, verifier: Verifier
) -> None:
    offered = [external_sum(verifier, MIXED, counter=counter) for counter in range(3)]
    assert len(judge.judge(offered, wanted=1).groups) == 1
    later = judge.judge(offered, wanted=3)
    assert len(later.groups) == 2
    assert later.dropped == {"duplicate": 1}
