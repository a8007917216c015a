"""Test the comparison of a GPU with the CPU, on two policies that differ slightly."""

from dataclasses import replace

import pytest
import torch

from bench.gpu.exact import Work, compare_greedy, differences, make_work, run_pass
from bench.gpu.plan import sizes_for_dry_run
from node_client.model.policy import Policy

SIZE = replace(sizes_for_dry_run()["small"][0], prompts=8, completion_tokens=16)


@pytest.fixture(scope="module")
def reference() -> Policy:
    return Policy.load("tiny", device="cpu")


@pytest.fixture(scope="module")
def other() -> Policy:
    """The same policy with a little noise on each weight."""
    policy = Policy.load("tiny", device="cpu")
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in policy.trainable():
            weight.mul_(1 + 0.3 * torch.randn(weight.shape, generator=chance))
    return policy


@pytest.fixture(scope="module")
def work(reference: Policy) -> Work:
    return make_work(SIZE, reference)


def test_policy_does_not_differ_from_itself(work: Work, reference: Policy) -> None:
    found = differences(run_pass(work, reference), run_pass(work, reference))
    assert set(found.values()) == {0.0}


def test_changed_weights_affect_every_difference(
    work: Work, reference: Policy, other: Policy
) -> None:
    found = differences(run_pass(work, reference), run_pass(work, other))
    assert min(found.values()) > 1e-4


def test_ratios_of_some_rows_are_outside_the_clip_range(work: Work, reference: Policy) -> None:
    logprobs = run_pass(work, reference).logprobs
    ratios = (logprobs - work.old_logprobs).exp()
    assert ratios.min() < 0.8 < 1.28 < ratios.max()


def test_greedy_answers_of_the_same_policy_are_equal(work: Work, reference: Policy) -> None:
    found = compare_greedy(SIZE, work, reference, reference)
    assert found == {"greedy_equal_tokens": 1.0, "greedy_preference": 0.0}


def test_preference_of_the_reference_is_reported_if_greedy_answers_diverge(
    work: Work, reference: Policy, other: Policy
) -> None:
    found = compare_greedy(SIZE, work, reference, other)
    assert found["greedy_equal_tokens"] < 1
    assert found["greedy_preference"] > 0
