"""One update: every row once, in batches that fit, with the gradient of the formula."""

import pytest
import torch

from node_client.learning.rollouts import TrainingGroup
from node_client.learning.stopwatch import Stopwatch
from node_client.learning.update import make_rows, update_policy
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
    before = [parameter.detach().clone() for parameter in policy.trainable()]
    update_policy(
        GROUPS,
        policy=policy,
        optimizer=torch.optim.SGD(policy.trainable(), lr=1.0),
        config=TrainConfig(max_grad_norm=1e9, micro_batch_tokens=micro_batch_tokens),
        watch=Stopwatch(lambda: 0.0),
    )
    for old, new, gradient in zip(before, policy.trainable(), expected, strict=True):
        assert torch.allclose(old - new, gradient, atol=1e-5)


def test_gradient_is_clipped_to_its_norm() -> None:
    policy = toy_policy()
    before = [parameter.detach().clone() for parameter in policy.trainable()]
    report = update_policy(
        GROUPS,
        policy=policy,
        optimizer=torch.optim.SGD(policy.trainable(), lr=1.0),
        config=TrainConfig(max_grad_norm=0.01),
        watch=Stopwatch(lambda: 0.0),
    )
    moves = [old - new.detach() for old, new in zip(before, policy.trainable(), strict=True)]
    moved = torch.cat([move.flatten() for move in moves]).norm()
    assert report.grad_norm > 0.01
    assert moved.item() == pytest.approx(0.01, rel=1e-2)


def test_masked_truncated_row_still_counts_in_the_mean_of_its_group() -> None:
    masked = make_rows(GROUPS[:1], config=TrainConfig(mask_truncated_completions=True))
    assert masked == make_rows(GROUPS[:1], config=TrainConfig())[:2]


def test_positions_do_not_count_padding() -> None:
    attention = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    assert positions_of(attention).tolist() == [[0, 0, 0, 1], [0, 1, 2, 2]]
