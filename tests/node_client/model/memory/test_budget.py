"""When memory runs out, fewer tokens go through the model at once, and the result is the same."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from node_client.errors import MemoryExhaustedError
from node_client.learning.optimizer import begin_training
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.timing import StepTimer
from node_client.learning.update.updater import Updater
from node_client.model.policy import Policy
from node_client.settings.choices import OptimizerKind
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy

FULL = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.")
GROUPS = [
    TrainingGroup(
        prompt=[5 + n] * 6, completions=[[7, 8, 9]] * 4, rewards=[1, 0, 0, 1], truncated=[False] * 4
    )
    for n in range(4)
]


def fail_above(tokens: int, done: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs out of memory with more than this number of tokens."""

    def wrapped(prompts: Any, completions: Any, **options: Any) -> Any:
        if sum(map(len, completions)) > tokens:
            raise FULL
        return done(prompts, completions, **options)

    return wrapped


CONFIG = TrainConfig(micro_batch_tokens=256)


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    config: TrainConfig = CONFIG,
) -> None:
    optimizer = optimizer or torch.optim.SGD(policy.trainable(), lr=1.0)
    Updater(policy, config, optimizer=optimizer).update(GROUPS, timer=StepTimer(lambda: 0.0))


@pytest.mark.slow
def test_update_continues_with_smaller_micro_batches() -> None:
    roomy, cramped = toy_policy(), toy_policy()
    cramped.logprobs = fail_above(24, cramped.logprobs)  # type: ignore[method-assign]
    update(roomy)
    update(cramped)
    assert roomy.update_budget.share == 1
    assert cramped.update_budget.share < 1
    for one, other in zip(roomy.trainable(), cramped.trainable(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["adamw", "adamw_8bit"])
@pytest.mark.parametrize("place", [0, 1, 7])
def test_update_recovers_if_memory_runs_out_in_any_optimizer_allocation(
    monkeypatch: pytest.MonkeyPatch, kind: OptimizerKind, place: int
) -> None:
    policy, expected = toy_policy(), toy_policy()
    config = replace(CONFIG, optimizer=kind)
    update(expected, begin_training(expected, config))
    optimizer = begin_training(policy, config)
    zeros, calls = torch.zeros_like, count()

    def fail_once(like: Tensor, **options: Any) -> Tensor:
        # Only an optimizer creates zeros like a parameter, for its averages.
        if isinstance(like, nn.Parameter) and next(calls) == place:
            raise FULL
        return zeros(like, **options)

    monkeypatch.setattr(torch, "zeros_like", fail_once)
    update(policy, optimizer)
    assert policy.update_budget.share == 0.5
    assert all(map(torch.equal, policy.trainable(), expected.trainable()))


def test_other_errors_are_not_treated_as_a_lack_of_memory() -> None:
    policy = toy_policy()

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("shapes do not match")

    policy.logprobs = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="shapes do not match"):
        update(policy)
    assert policy.update_budget.share == 1


@pytest.mark.slow
def test_update_that_never_fits_ends_with_advice() -> None:
    policy = toy_policy()
    policy.logprobs = fail_above(0, policy.logprobs)  # type: ignore[method-assign]
    with pytest.raises(MemoryExhaustedError, match="in an update") as caught:
        update(policy)
    assert "(--fresh) with adapters instead of all weights (lora_r = 16)" in caught.value.fix


def test_completed_passes_are_not_repeated_if_memory_runs_out_later() -> None:
    config = replace(CONFIG, num_iterations=3)
    once, cramped = toy_policy(), toy_policy()
    update(once)
    calls = count()

    def fail_in_the_second_pass(prompts: Any, completions: Any, **options: Any) -> Any:
        # One micro-batch: its log-probs before the update, the first pass, the second.
        if next(calls) == 2:
            raise FULL
        return original(prompts, completions, **options)

    original = cramped.logprobs
    cramped.logprobs = fail_in_the_second_pass  # type: ignore[method-assign]
    update(cramped, config=config)
    assert cramped.update_budget.share < 1
    for one, other in zip(once.trainable(), cramped.trainable(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
