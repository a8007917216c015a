"""Own rollouts are scored and shared; own and external ones make one training set."""

import random
from collections import Counter

import pytest

from node_client.learning.rollouts import (
    LocalRollout,
    TrainingGroup,
    assemble_training_set,
    score_answers,
    shareable_rollouts,
)
from node_client.model.policy import Generated, Policy
from swarm_protocol.codec import decode_from_node, encode
from swarm_protocol.messages import PublishRollouts
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy, toy_stream


@pytest.fixture(scope="module")
def policy() -> Policy:
    return toy_policy()


def group_of(number: int) -> TrainingGroup:
    return TrainingGroup(
        prompt=[number], completions=[[1], [2]], rewards=[0.0, 1.0], truncated=[False, False]
    )


def numbers_of(groups: list[TrainingGroup]) -> list[int]:
    return [group.prompt[0] for group in groups]


def own_rollout(verifier: Verifier, policy: Policy, texts: list[str]) -> LocalRollout:
    stream = toy_stream(verifier)
    answers = [Generated(text, "stop", token_ids=[5, 1], logprobs=[-0.5, -0.25]) for text in texts]
    (task,) = stream.draw(1)
    return score_answers(
        task,
        answers,
        policy=policy,
        verifier=verifier,
        reward="binary",
        system_prompt=SYSTEM_PROMPT,
    )


def test_training_set_has_local_and_external_groups() -> None:
    mixed = assemble_training_set(
        own=[group_of(number) for number in range(8)],
        external=[group_of(number) for number in range(100, 108)],
        local_count=4,
        external_count=4,
        chance=random.Random(0),
    )
    assert (mixed.local, mixed.external) == (4, 4)
    assert sum(number >= 100 for number in numbers_of(mixed.groups)) == 4
    assert len(set(numbers_of(mixed.groups))) == 8


def test_missing_external_groups_are_replaced_by_spare_own_ones() -> None:
    mixed = assemble_training_set(
        own=[group_of(number) for number in range(8)],
        external=[group_of(100)],
        local_count=4,
        external_count=4,
        chance=random.Random(0),
    )
    assert (mixed.local, mixed.external) == (7, 1)


def test_training_set_is_smaller_when_nothing_is_spare() -> None:
    mixed = assemble_training_set(
        own=[group_of(number) for number in range(4)],
        external=[],
        local_count=4,
        external_count=4,
        chance=random.Random(0),
    )
    assert (mixed.local, mixed.external) == (4, 0)


def test_own_groups_are_drawn_uniformly() -> None:
    drawn: Counter[int] = Counter()
    for seed in range(400):
        mixed = assemble_training_set(
            own=[group_of(number) for number in range(4)],
            external=[],
            local_count=1,
            external_count=0,
            chance=random.Random(seed),
        )
        drawn.update(numbers_of(mixed.groups))
    assert all(60 < drawn[number] < 140 for number in range(4))


def test_shared_rollout_passes_the_wire_and_holds_no_rewards(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, policy, ["<answer>4</answer>", "5"])
    shared = shareable_rollouts([rollout], policy=policy, node="here", step=3)
    message = PublishRollouts(id="1", rollouts=shared)
    assert decode_from_node(encode(message)) == message
    assert "reward" not in encode(message)
    assert shared[0].task == rollout.task.spec


def test_sharing_again_repeats_the_id_and_another_step_changes_it(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, policy, ["4", "5"])
    first, again, later = (
        shareable_rollouts([rollout], policy=policy, node="here", step=step)[0].id
        for step in (3, 3, 4)
    )
    assert first == again != later


@pytest.mark.parametrize("text", ["nul \x00", "surrogate \ud800", "x" * 16_385])
def test_rollout_that_the_wire_refuses_stays_at_home(
    policy: Policy, verifier: Verifier, text: str
) -> None:
    rollout = own_rollout(verifier, policy, [text, "5"])
    assert shareable_rollouts([rollout], policy=policy, node="here", step=0) == []
