"""One update: every row once, in batches that fit, with the gradient of the formula."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from math import isfinite
from typing import Any

import pytest
import torch

from node_client.learning.rollouts import SenderLogprobs, TrainingGroup
from node_client.learning.timing import StepTimer
from node_client.learning.update.rows import make_rows
from node_client.learning.update.updater import Updater, UpdateReport
from node_client.model.padding import positions_of
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy

GROUPS = [
    TrainingGroup(
        prompt=[5, 6, 7],
        completions=[[8, 9, 1], [10, 1], [11, 12, 13, 14]],
        rewards=[1.0, 0.0, 0.0],
        truncated=[False, False, True],
    ),
    TrainingGroup(
        prompt=[15],
        completions=[[16, 1], [17, 18, 1], [19, 1]],
        rewards=[0.0, 0.0, 0.0],
        truncated=[False, False, False],
    ),
    TrainingGroup(
        prompt=[20, 21],
        completions=[[22, 1], [23, 1], [24, 1]],
        rewards=[1.0, 1.0, 0.0],
        truncated=[False, False, False],
    ),
]
TOKENS = 3 + 2 + 4 + 2 + 3 + 2 + 2 + 2 + 2


def update(
    policy: Policy,
    config: TrainConfig,
    *,
    rate: float = 1.0,
    groups: Sequence[TrainingGroup] = GROUPS,
    scaler: torch.amp.GradScaler | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> UpdateReport:
    """Update the policy by plain gradient descent."""
    optimizer = optimizer or torch.optim.SGD(policy.trainable(), lr=rate)
    updater = Updater(policy, config, optimizer=optimizer)
    updater.scaler = scaler or updater.scaler
    return updater.update(groups, timer=StepTimer(lambda: 0.0))


def weights_of(policy: Policy) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in policy.trainable()]


def gradient_of_formula(policy: Policy) -> list[torch.Tensor]:
    """Return the gradient of the token mean of -log p · advantage, row by row, unbatched."""
    objective = torch.zeros(())
    for row in make_rows(GROUPS, config=TrainConfig()):
        logprobs, _ = policy.logprobs([row.prompt], [row.completion])
        objective = objective - logprobs.sum() * row.advantage / TOKENS
    return list(torch.autograd.grad(objective, policy.trainable()))


@pytest.mark.parametrize("micro_batch_tokens", [4096, 12, 1])
def test_update_follows_the_gradient_of_the_formula(micro_batch_tokens: int) -> None:
    policy = toy_policy()
    expected = gradient_of_formula(policy)
    before = weights_of(policy)
    config = TrainConfig(max_grad_norm=1e9, micro_batch_tokens=micro_batch_tokens)
    report = update(policy, config)
    rows = make_rows(GROUPS, config=config)
    # In the first pass all ratios are 1.
    loss = -sum(len(row.completion) * row.advantage for row in rows) / TOKENS
    assert report.loss == pytest.approx(loss, abs=1e-5)
    norm = torch.cat([gradient.flatten() for gradient in expected]).norm().item()
    assert report.grad_norm == pytest.approx(norm, rel=1e-4)
    for old, new, gradient in zip(before, policy.trainable(), expected, strict=True):
        assert torch.allclose(old - new, gradient, atol=1e-5)


def test_gradient_is_clipped_to_its_norm() -> None:
    policy = toy_policy()
    before = weights_of(policy)
    report = update(policy, TrainConfig(max_grad_norm=0.01))
    moves = [old - new.detach() for old, new in zip(before, policy.trainable(), strict=True)]
    moved = torch.cat([move.flatten() for move in moves]).norm()
    assert report.grad_norm > 0.01
    assert moved.item() == pytest.approx(0.01, rel=1e-2)


def test_clip_takes_effect_from_the_second_pass_on() -> None:
    policy = toy_policy()
    assert update(policy, TrainConfig(num_iterations=1), rate=30.0).clip_ratio == 0
    policy = toy_policy()
    assert update(policy, TrainConfig(num_iterations=2), rate=30.0).clip_ratio > 0


@pytest.mark.parametrize("passes", [1, 2])
def test_true_log_probs_of_the_sender_have_no_effect_on_a_rollout_of_this_policy(
    passes: int,
) -> None:
    policy = toy_policy()
    group = GROUPS[0]
    claims = []
    for completion in group.completions:
        tokens = policy.logprobs([group.prompt], [completion])[0][0].tolist()
        claims.append(SenderLogprobs(sum(tokens), tokens))
    moved = []
    for groups in ([group], [replace(group, external=True, sender_logprobs=claims)]):
        other = toy_policy()
        update(other, TrainConfig(importance="sender", num_iterations=passes), groups=groups)
        moved.append(torch.cat([weights.flatten() for weights in weights_of(other)]))
    assert torch.allclose(moved[0], moved[1], atol=1e-6)


def test_text_unlikely_here_but_likely_at_the_sender_moves_the_policy_less() -> None:
    group = GROUPS[0]
    moves = []
    for importance in ("own", "sender"):
        policy = toy_policy()
        before = weights_of(policy)
        claims = [SenderLogprobs(0.0)] * len(group.completions)
        update(
            policy,
            TrainConfig(importance=importance, max_grad_norm=1e9),
            groups=[replace(group, external=True, sender_logprobs=claims)],
        )
        after = weights_of(policy)
        moves.append(sum((old - new).abs().sum() for old, new in zip(before, after, strict=True)))
    assert moves[1] < 0.01 * moves[0]


def test_kl_term_keeps_the_policy_near_its_reference() -> None:
    policy = toy_policy()
    policy.keep_reference()
    start = weights_of(policy)
    update(policy, TrainConfig(num_iterations=3, max_grad_norm=1e9), rate=1.0)
    away = policy.logprobs([[5, 6, 7]], [[8, 9, 1]])[0]
    reports = [update(policy, TrainConfig(beta=10.0), rate=0.02) for _ in range(20)]
    assert reports[-1].kl < reports[0].kl
    assert not torch.equal(weights_of(policy)[0], start[0])
    reference = policy.reference_logprobs([[5, 6, 7]], [[8, 9, 1]])
    now = policy.logprobs([[5, 6, 7]], [[8, 9, 1]])[0]
    assert (now - reference).abs().sum() < (away - reference).abs().sum()


def test_kl_term_also_affects_rows_without_advantage() -> None:
    policy = toy_policy()
    policy.keep_reference()
    update(policy, TrainConfig(), rate=1.0)
    before = weights_of(policy)
    update(policy, TrainConfig(beta=1.0), groups=GROUPS[1:2])
    assert not torch.equal(before[0], weights_of(policy)[0])


def test_uninformative_groups_do_not_change_the_weights() -> None:
    policy = toy_policy()
    before = weights_of(policy)
    assert update(policy, TrainConfig(), groups=GROUPS[1:2]).grad_norm == 0
    assert all(map(torch.equal, before, weights_of(policy)))


def test_positions_do_not_count_padding() -> None:
    attention = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    assert positions_of(attention).tolist() == [[0, 0, 0, 1], [0, 1, 2, 2]]


def test_float16_step_is_close_to_the_float32_step() -> None:
    exact, coarse = toy_policy(), toy_policy()
    before = weights_of(exact)
    for policy, config in ((exact, TrainConfig()), (coarse, TrainConfig(precision="fp16"))):
        policy.set_precision(config.precision)
        update(policy, config)
    moves = [new - old for new, old in zip(weights_of(exact), before, strict=True)]
    others = [new - old for new, old in zip(weights_of(coarse), before, strict=True)]
    difference = sum((one - other).norm() for one, other in zip(moves, others, strict=True))
    assert 0 < difference < 0.05 * sum(move.norm() for move in moves)


def test_overflowing_step_is_skipped_and_the_loss_scale_is_reduced() -> None:
    policy = toy_policy()
    before = weights_of(policy)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    huge = [replace(GROUPS[0], rewards=[1e36] + [0.0] * (len(GROUPS[0].rewards) - 1))]
    update(policy, TrainConfig(scale_rewards="none"), groups=huge, scaler=scaler)
    assert all(torch.equal(old, new) for old, new in zip(before, weights_of(policy), strict=True))
    assert scaler.get_scale() == 2.0**15


def test_step_with_nan_gradients_changes_nothing() -> None:
    policy = toy_policy()
    before = weights_of(policy)
    broken = [replace(GROUPS[0], rewards=[float("nan")] * len(GROUPS[0].rewards))]
    report = update(policy, TrainConfig(), groups=broken)
    assert all(torch.equal(old, new) for old, new in zip(before, weights_of(policy), strict=True))
    assert not isfinite(report.loss)


def test_scaled_step_continues_after_memory_ran_out() -> None:
    policy, scaler = toy_policy(), torch.amp.GradScaler("cpu", init_scale=2.0)
    optimizer = torch.optim.SGD(policy.trainable(), lr=1.0)
    step, calls = optimizer.step, count()

    def fail_once(*arguments: Any, **options: Any) -> Any:
        if next(calls) == 0:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return step(*arguments, **options)

    optimizer.step = fail_once  # type: ignore[method-assign]
    before = weights_of(policy)
    update(policy, TrainConfig(), scaler=scaler, optimizer=optimizer)
    assert policy.update_budget.share < 1
    assert any(not torch.equal(a, b) for a, b in zip(before, weights_of(policy), strict=True))
