"""Advantages and losses against hand-computed numbers; test_losses_trl.py compares with trl."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from node_client.errors import SettingsError
from node_client.learning.update.losses import (
    ClippedLoss,
    Correction,
    Loss,
    Objective,
    PolicyLoss,
    Tokens,
    group_advantages,
)
from node_client.settings.choices import ImportanceSamplingLevel
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, external_sum, make_trainer


def loss_of(
    ratios: list[list[float]],
    advantages: list[float],
    mask: list[list[int]] | None = None,
    objective: Objective | None = None,
    cap: float | None = None,
) -> tuple[Loss, Tensor]:
    """Return the loss of tokens with given ratios, and its gradient for their log-probs.

    With a cap all rows are external, and the cap bounds their ratios.
    """
    logprobs = torch.tensor(ratios).log().requires_grad_()
    weights = torch.ones_like(logprobs) if mask is None else torch.tensor(mask)
    tokens = Tokens(
        logprobs=logprobs,
        old_logprobs=torch.zeros_like(logprobs),
        mask=weights,
        advantages=torch.tensor(advantages),
        weights=torch.full((len(ratios),), 1 / int(weights.sum())),
        correction=None if cap is None else capped(len(ratios), cap=cap),
    )
    loss = ClippedLoss().compute(tokens, objective=objective or Objective())
    loss.value.backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    return loss, logprobs.grad


def capped(rows: int, *, cap: float) -> Correction:
    return Correction(torch.full((rows,), cap), torch.ones(rows), torch.zeros(rows).bool())


def test_zero_advantage_gives_zero_gradient() -> None:
    _, gradient = loss_of([[1.0, 0.7, 1.5]], [0.0])
    assert gradient.abs().sum() == 0


def test_ratio_one_gives_the_plain_policy_gradient() -> None:
    loss, gradient = loss_of([[1.0, 1.0]], [3.0])
    assert loss.value.item() == pytest.approx(-3.0)
    assert gradient.tolist() == [[-1.5, -1.5]]


def test_clip_is_higher_above_than_below() -> None:
    loss, gradient = loss_of([[1.25]], [1.0])
    assert loss.value.item() == pytest.approx(-1.25)  # inside 1.28
    assert gradient.item() != 0
    loss, gradient = loss_of([[0.75]], [-1.0])
    assert loss.value.item() == pytest.approx(0.8)  # outside 0.8
    assert gradient.item() == 0


def test_clip_stops_only_tokens_that_would_gain_by_moving_further() -> None:
    _, gradient = loss_of([[1.5]], [1.0])
    assert gradient.item() == 0
    _, gradient = loss_of([[1.5]], [-1.0])
    assert gradient.item() == pytest.approx(1.5)
    _, gradient = loss_of([[0.5]], [1.0])
    assert gradient.item() == pytest.approx(-0.5)


def test_delta_bounds_ratios_that_the_clip_does_not() -> None:
    loss, gradient = loss_of([[5.0]], [-1.0])
    assert loss.value.item() == pytest.approx(5.0)
    assert gradient.item() == pytest.approx(5.0)
    loss, gradient = loss_of([[5.0]], [-1.0], objective=Objective(delta=4.0))
    assert loss.value.item() == pytest.approx(4.0)
    assert gradient.item() == 0


def test_tokens_bounded_by_delta_count_as_clipped_above() -> None:
    ratios, advantages = [[5.0, 3.0], [5.0, 1.0]], [-1.0, 1.0]
    free, _ = loss_of(ratios, advantages)
    assert (free.clip_low, free.clip_high) == (0, 1)
    bounded, _ = loss_of(ratios, advantages, objective=Objective(delta=4.0))
    assert (bounded.clip_low, bounded.clip_high) == (0, 2)


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_wrong_token_above_the_cap_is_unlearned_with_the_weight_of_the_cap(
    level: ImportanceSamplingLevel,
) -> None:
    objective = Objective(level=level)
    loss, gradient = loss_of([[50.0]], [-2.0], cap=3.0, objective=objective)
    assert loss.value.item() == pytest.approx(6.0)
    assert gradient.item() == pytest.approx(6.0)


def test_right_token_above_the_cap_is_clipped_as_without_a_cap() -> None:
    loss, gradient = loss_of([[50.0]], [2.0], cap=3.0)
    assert loss.value.item() == pytest.approx(-2 * 1.28)
    assert gradient.item() == 0
    assert loss.clip_high == 1


@pytest.mark.parametrize(("cap", "highest"), [(3.0, 2.9), (math.inf, 1e9)])
def test_cap_does_not_affect_ratios_below_it(cap: float, highest: float) -> None:
    ratios, advantages = [[highest, 0.5], [1.5, 1e-9]], [-1.0, 0.5]
    (loss, gradient), (other, same) = (
        loss_of(ratios, advantages, cap=each) for each in (cap, None)
    )
    assert torch.equal(loss.value, other.value)
    assert torch.equal(gradient, same)
    assert (loss.clip_low, loss.clip_high) == (other.clip_low, other.clip_high)


def test_ratio_of_a_sequence_is_the_geometric_mean_of_its_tokens() -> None:
    by_sequence = Objective(level="sequence")
    loss, _ = loss_of([[1.21, 1.0, 9.0]], [1.0], mask=[[1, 1, 0]], objective=by_sequence)
    assert loss.value.item() == pytest.approx(-1.1)


def test_clipped_tokens_are_counted_by_side() -> None:
    loss, _ = loss_of([[1.5, 1.0], [0.5, 1.5]], [1.0, -1.0])
    assert (loss.clip_high, loss.clip_low) == (1, 1)


def test_loss_is_a_mean_over_tokens_not_over_rows() -> None:
    loss, _ = loss_of([[1, 1, 1], [1, 1, 1]], [1.0, -1.0], mask=[[1, 1, 1], [1, 0, 0]])
    assert loss.value.item() == pytest.approx(-(3 - 1) / 4)


def test_padding_with_extreme_log_probs_affects_neither_loss_nor_gradient() -> None:
    logprobs = torch.tensor([[0.0, 1e6]], requires_grad=True)
    tokens = Tokens(
        logprobs=logprobs,
        old_logprobs=torch.zeros(1, 2),
        mask=torch.tensor([[1, 0]]),
        advantages=torch.tensor([1.0]),
        weights=torch.tensor([1.0]),
        reference_logprobs=torch.zeros(1, 2),
    )
    loss = ClippedLoss().compute(tokens, objective=Objective(beta=0.1))
    loss.value.backward()  # type: ignore[no-untyped-call]
    assert loss.value.item() == -1
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-1.0, 0.0]]


class Doubled(PolicyLoss):
    """Twice the clipped loss."""

    def compute(self, tokens: Tokens, *, objective: Objective) -> Loss:
        loss = ClippedLoss().compute(tokens, objective=objective)
        return replace(loss, value=2 * loss.value)


def test_custom_loss_is_used_in_training(verifier: Verifier) -> None:
    texts = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")
    offered = [external_sum(verifier, texts, counter=number) for number in range(2)]
    plain, doubled = (
        make_trainer(
            verifier,
            config=TrainConfig(policy_loss=name, max_grad_norm=1e9),
            exchange=PoolInMemory(offered),
        ).step()
        for name in ("clipped", f"{__name__}:Doubled")
    )
    assert doubled.grad_norm == pytest.approx(2 * plain.grad_norm, rel=1e-4)
    assert plain.grad_norm > 0


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (TrainConfig(policy_loss="kind"), "policy_loss cannot be kind"),
        (TrainConfig(policy_loss="collections:Counter"), "policy_loss: .* is not a PolicyLoss"),
        (TrainConfig(reward="kind"), "reward cannot be kind"),
        (TrainConfig(reward="collections:Counter"), "reward: .* is not a Reward"),
    ],
)
def test_trainer_with_an_invalid_part_is_refused_before_its_first_step(
    verifier: Verifier, config: TrainConfig, complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint):
        make_trainer(verifier, config=config)


def test_advantages_are_differences_from_the_group_mean_in_standard_deviations() -> None:
    (advantages,) = group_advantages([[1.0, 0.0, 0.0, 0.0]], scale_rewards="group")
    # mean 1/4, Bessel-corrected standard deviation 1/2
    assert advantages == pytest.approx([1.5, -0.5, -0.5, -0.5], rel=1e-3)


@pytest.mark.parametrize("reward", [0.0, 0.1, 1.0])
def test_equal_rewards_give_advantages_of_exactly_zero(reward: float) -> None:
    assert group_advantages([[reward] * 7], scale_rewards="group") == [[0.0] * 7]


def test_each_group_is_normalised_by_itself() -> None:
    one, other = group_advantages([[1.0, 0.0], [5.0, 3.0]], scale_rewards="group")
    assert one == pytest.approx(other, rel=1e-3)


def test_groups_may_differ_in_size() -> None:
    pair, triple = group_advantages([[1.0, 0.0], [1.0, 0.0, 0.0]], scale_rewards="none")
    assert (len(pair), len(triple)) == (2, 3)
