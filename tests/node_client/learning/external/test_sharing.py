"""Own rollouts are published with what others need, and without what they could not trust."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from node_client.learning.external.sharing import explain_unshared, shareable_rollouts
from node_client.learning.rollouts import LocalRollout
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import TrainConfig
from swarm_protocol.codec import decode_from_node, encode
from swarm_protocol.logprobs import decode_logprobs
from swarm_protocol.messages import (
    MAX_LOGPROBS_CHARS,
    MAX_ROLLOUT_BYTES,
    PublishRollouts,
    Rollout,
)
from swarm_tasks.verdicts import Reason, Verdict
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import group_of, toy_policy, toy_season, toy_stream

ROOMY = msgspec.structs.replace(toy_season(completions=32), max_new_tokens=MAX_LOGPROBS_CHARS)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return toy_policy()


def own_rollout(verifier: Verifier, texts: list[str], *, tokens: int = 2) -> LocalRollout:
    answers = [
        Generated(text, "stop", token_ids=[5] * tokens, logprobs=[-0.25] * tokens) for text in texts
    ]
    (task,) = toy_stream(verifier).draw(1)
    verdicts = verifier.score(task.spec, texts)
    return LocalRollout(task=task, answers=answers, verdicts=verdicts, group=group_of(0, 1))


def share(rollout: LocalRollout, policy: Policy, *, step: int = 0, **options: Any) -> list[Rollout]:
    """Return the rollout in the format of the wire, if it can be shared."""
    options = {"season": ROOMY, **options}
    return shareable_rollouts([rollout], policy=policy, node="here", step=step, **options)


def test_published_rollout_can_be_decoded_and_contains_no_rewards(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, ["<answer>4</answer>", "5"])
    shared = share(rollout, policy, step=3)
    message = PublishRollouts(id="1", rollouts=shared)
    assert decode_from_node(encode(message)) == message
    assert "reward" not in encode(message)
    assert shared[0].task == rollout.task.spec


def test_id_is_repeated_for_the_same_step_and_changes_with_the_step(
    policy: Policy, verifier: Verifier
) -> None:
    rollout = own_rollout(verifier, ["4", "5"])
    first, again, later = (share(rollout, policy, step=step)[0].id for step in (3, 3, 4))
    assert first == again != later


def test_other_answers_to_a_question_of_the_same_step_have_another_id(
    policy: Policy, verifier: Verifier
) -> None:
    before, after = (
        share(own_rollout(verifier, texts), policy)[0] for texts in (["4", "5"], ["4", "6"])
    )
    assert before.task == after.task
    assert before.id != after.id


@pytest.mark.parametrize("text", ["nul \x00", "surrogate \ud800", "x" * 16_385])
def test_rollout_with_text_invalid_in_messages_is_not_published(
    policy: Policy, verifier: Verifier, text: str
) -> None:
    rollout = own_rollout(verifier, [text, "5"])
    assert share(rollout, policy) == []


@pytest.mark.parametrize("reason", ["timeout", "verifier_error"])
def test_rollout_that_the_verifier_cannot_score_is_not_published(
    policy: Policy, verifier: Verifier, reason: Reason
) -> None:
    rollout = own_rollout(verifier, ["4", "5"])
    rollout.verdicts[1] = Verdict(0.0, reason)
    assert share(rollout, policy) == []


def test_rollout_with_incomplete_characters_is_not_published(
    policy: Policy, verifier: Verifier
) -> None:
    written = policy.completion_ids("4 \ufffd", "stop")
    assert written is not None
    # The first of the character's three bytes alone is decoded to the same character.
    torn = [*written[:3], written[-1]]
    for ids, shared in ((written, 1), (torn, 0)):
        text = policy._tokenizer.tokenizer.decode(ids, skip_special_tokens=True)
        assert text == "4 \ufffd"
        rollout = own_rollout(verifier, ["5", "6"])
        answer = Generated(text, "stop", token_ids=ids, logprobs=[-0.25] * len(ids))
        rollout = replace(rollout, answers=[answer, rollout.answers[1]])
        found = share(rollout, policy)
        assert len(found) == shared


@pytest.mark.parametrize(
    ("texts", "tokens"), [(["4"] * 5, 8), (["4"] * 4, 9)], ids=["completions", "tokens"]
)
def test_rollout_larger_than_the_season_allows_is_not_published(
    policy: Policy, verifier: Verifier, texts: list[str], tokens: int
) -> None:
    season = toy_season(completions=4)
    fits, too_large = (
        share(rollout, policy, season=season)
        for rollout in (
            own_rollout(verifier, ["4"] * 4, tokens=8),
            own_rollout(verifier, texts, tokens=tokens),
        )
    )
    assert (len(fits), too_large) == (1, [])


@pytest.mark.parametrize(("more", "shared"), [(0, 1), (1, 0)])
def test_rollout_that_is_too_large_even_without_log_probs_is_not_published(
    policy: Policy, verifier: Verifier, more: int, shared: int
) -> None:
    texts = ["x" * 16_000] * 8
    (bare,) = share(own_rollout(verifier, [*texts, ""]), policy, with_logprobs=False)
    space = MAX_ROLLOUT_BYTES - len(msgspec.json.encode(bare))
    found = share(own_rollout(verifier, [*texts, "x" * (space + more)]), policy)
    assert len(found) == shared
    assert all(each.logprob is None for rollout in found for each in rollout.completions)


def test_settings_that_prevent_publishing_are_reported_with_their_remedy() -> None:
    larger = TrainConfig(num_generations=16, max_completion_length=64)
    completions, tokens = explain_unshared(larger, toy_season(completions=8))
    assert "16" in completions
    assert "Leave num_generations out" in completions
    assert "64" in tokens
    assert "Leave max_completion_length out" in tokens


@pytest.mark.parametrize(
    "config", [TrainConfig(), TrainConfig(num_generations=8, max_completion_length=8)]
)
def test_settings_within_the_limits_of_the_season_are_not_reported(config: TrainConfig) -> None:
    assert list(explain_unshared(config, toy_season(completions=8))) == []


def test_published_completions_contain_their_log_probs(policy: Policy, verifier: Verifier) -> None:
    rollout = own_rollout(verifier, ["4", "5"], tokens=3)
    (shared,) = share(rollout, policy)
    for completion in shared.completions:
        assert decode_logprobs(completion.logprobs or "") == [-0.25] * 3
        assert completion.logprob is None


def test_log_probs_are_not_published_if_disabled(policy: Policy, verifier: Verifier) -> None:
    rollout = own_rollout(verifier, ["4", "5"])
    (shared,) = share(rollout, policy, with_logprobs=False)
    assert {(each.logprobs, each.logprob) for each in shared.completions} == {(None, None)}


@pytest.mark.parametrize(
    ("completions", "tokens"),
    [(2, MAX_LOGPROBS_CHARS), (32, 2000)],
    ids=["a long completion", "a large rollout"],
)
def test_log_probs_that_need_too_much_space_are_summed(
    policy: Policy, verifier: Verifier, completions: int, tokens: int
) -> None:
    rollout = own_rollout(verifier, ["4"] * completions, tokens=tokens)
    shared = share(rollout, policy)
    sent = {(each.logprobs, each.logprob) for each in shared[0].completions}
    assert sent == {(None, -0.25 * tokens)}
    decode_from_node(encode(PublishRollouts(id="1", rollouts=shared)))
