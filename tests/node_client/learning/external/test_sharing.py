"""Own rollouts go over the wire with what others need, and nothing that they could not believe."""

from dataclasses import replace

import msgspec
import pytest

from node_client.learning.external.sharing import explain_unshared, shareable_rollouts
from node_client.learning.rollouts import LocalRollout, TrainingGroup
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import TrainConfig
from swarm_protocol.codec import decode_from_node, encode
from swarm_protocol.logprobs import decode_logprobs
from swarm_protocol.messages import MAX_LOGPROBS_CHARS, PublishRollouts
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy, toy_season, toy_stream

ROOMY = msgspec.structs.replace(toy_season(completions=32), max_new_tokens=MAX_LOGPROBS_CHARS)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return toy_policy()


def own_rollout(
    verifier: Verifier, policy: Policy, texts: list[str], *, tokens: int = 2
) -> LocalRollout:
    stream = toy_stream(verifier)
    answers = [
        Generated(text, "stop", token_ids=[5] * tokens, logprobs=[-0.25] * tokens) for text in texts
    ]
    (task,) = stream.draw(1)
    verdicts = verifier.score(task.spec, texts)
    group = TrainingGroup(
        prompt=policy.prompt_ids(task.question),
        completions=[answer.token_ids for answer in answers],
        rewards=[float(verdict.solved) for verdict in verdicts],
        truncated=[False] * len(answers),
    )
    return LocalRollout(task=task, answers=answers, verdicts=verdicts, group=group)


def test_shared_rollout_passes_the_wire_and_holds_no_rewards(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, policy, ["<answer>4</answer>", "5"])
    shared = shareable_rollouts([rollout], policy=policy, season=ROOMY, node="here", step=3)
    message = PublishRollouts(id="1", rollouts=shared)
    assert decode_from_node(encode(message)) == message
    assert "reward" not in encode(message)
    assert shared[0].task == rollout.task.spec


def test_sharing_again_repeats_the_id_and_another_step_changes_it(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, policy, ["4", "5"])
    first, again, later = (
        shareable_rollouts([rollout], policy=policy, season=ROOMY, node="here", step=step)[0].id
        for step in (3, 3, 4)
    )
    assert first == again != later


def test_other_answers_to_a_question_of_the_same_step_have_another_id(
    policy: Policy, verifier: Verifier
) -> None:
    before, anew = (
        shareable_rollouts(
            [own_rollout(verifier, policy, texts)], policy=policy, season=ROOMY, node="here", step=3
        )[0]
        for texts in (["4", "5"], ["4", "6"])
    )
    assert before.task == anew.task
    assert before.id != anew.id


@pytest.mark.parametrize("text", ["nul \x00", "surrogate \ud800", "x" * 16_385])
def test_rollout_that_the_wire_refuses_stays_at_home(
    policy: Policy, verifier: Verifier, text: str
) -> None:
    rollout = own_rollout(verifier, policy, [text, "5"])
    assert shareable_rollouts([rollout], policy=policy, season=ROOMY, node="here", step=0) == []


def test_bytes_that_are_no_text_keep_a_rollout_at_home(policy: Policy, verifier: Verifier) -> None:
    written = policy.completion_ids("4 \ufffd", "stop")
    assert written is not None
    # The first of the character's three bytes alone is decoded to the same character.
    torn = [*written[:3], written[-1]]
    for ids, shared in ((written, 1), (torn, 0)):
        text = policy._tokenizer.tokenizer.decode(ids, skip_special_tokens=True)
        assert text == "4 \ufffd"
        rollout = own_rollout(verifier, policy, ["5", "6"])
        answer = Generated(text, "stop", token_ids=ids, logprobs=[-0.25] * len(ids))
        rollout = replace(rollout, answers=[answer, rollout.answers[1]])
        found = shareable_rollouts([rollout], policy=policy, season=ROOMY, node="here", step=0)
        assert len(found) == shared


@pytest.mark.parametrize(
    ("texts", "tokens"), [(["4"] * 5, 8), (["4"] * 4, 9)], ids=["completions", "tokens"]
)
def test_rollout_that_is_larger_than_the_seasons_stays_at_home(
    policy: Policy, verifier: Verifier, texts: list[str], tokens: int
) -> None:
    season = toy_season(completions=4)
    fits, too_large = (
        shareable_rollouts([rollout], policy=policy, season=season, node="here", step=0)
        for rollout in (
            own_rollout(verifier, policy, ["4"] * 4, tokens=8),
            own_rollout(verifier, policy, texts, tokens=tokens),
        )
    )
    assert (len(fits), too_large) == (1, [])


def test_settings_that_keep_rollouts_at_home_are_told_with_their_remedy() -> None:
    larger = TrainConfig(num_generations=16, max_completion_length=64)
    completions, tokens = explain_unshared(larger, toy_season(completions=8))
    assert "16" in completions
    assert "Leave num_generations out" in completions
    assert "64" in tokens
    assert "Leave max_completion_length out" in tokens


@pytest.mark.parametrize(
    "config", [TrainConfig(), TrainConfig(num_generations=8, max_completion_length=8)]
)
def test_settings_within_the_seasons_are_no_cause_for_a_word(config: TrainConfig) -> None:
    assert list(explain_unshared(config, toy_season(completions=8))) == []


def test_shared_completions_carry_their_log_probs(policy: Policy, verifier: Verifier) -> None:
    rollout = own_rollout(verifier, policy, ["4", "5"], tokens=3)
    (shared,) = shareable_rollouts([rollout], policy=policy, season=ROOMY, node="here", step=0)
    for completion in shared.completions:
        assert decode_logprobs(completion.logprobs or "") == [-0.25] * 3
        assert completion.logprob is None


def test_log_probs_stay_at_home_if_they_are_not_to_be_shared(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, policy, ["4", "5"])
    (shared,) = shareable_rollouts(
        [rollout], policy=policy, season=ROOMY, node="here", step=0, with_logprobs=False
    )
    assert {(each.logprobs, each.logprob) for each in shared.completions} == {(None, None)}


@pytest.mark.parametrize(
    ("completions", "tokens"),
    [(2, MAX_LOGPROBS_CHARS), (32, 2000)],
    ids=["a long completion", "a large rollout"],
)
def test_log_probs_that_take_too_much_room_are_added_up(
    policy: Policy, verifier: Verifier, completions: int, tokens: int
) -> None:
    rollout = own_rollout(verifier, policy, ["4"] * completions, tokens=tokens)
    shared = shareable_rollouts([rollout], policy=policy, season=ROOMY, node="here", step=0)
    told = {(each.logprobs, each.logprob) for each in shared[0].completions}
    assert told == {(None, -0.25 * tokens)}
    decode_from_node(encode(PublishRollouts(id="1", rollouts=shared)))
