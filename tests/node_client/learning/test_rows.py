"""What each completion counts in the loss: by loss type, with and without truncated ones."""

import pytest

from node_client.learning.rollouts import TrainingGroup
from node_client.learning.rows import make_rows
from node_client.settings.choices import LossType
from node_client.settings.train_config import TrainConfig

GROUP = TrainingGroup(
    prompt=[5],
    completions=[[6, 7, 1], [8, 1], [9, 10, 11, 12, 13]],
    rewards=[1.0, 0.0, 0.0],
    truncated=[False, False, True],
)


@pytest.mark.parametrize(
    ("loss_type", "divisors"),
    [
        ("dapo", [10, 10, 10]),
        ("bnpo", [10, 10, 10]),
        ("grpo", [9, 6, 15]),
        ("dr_grpo", [24, 24, 24]),
    ],
)
def test_loss_type_decides_what_a_token_counts(loss_type: LossType, divisors: list[int]) -> None:
    rows = make_rows([GROUP], config=TrainConfig(loss_type=loss_type), max_completion_length=8)
    assert [1 / row.weight for row in rows] == pytest.approx(divisors)


@pytest.mark.parametrize(
    ("loss_type", "divisors"), [("dapo", [5, 5]), ("grpo", [9, 6]), ("dr_grpo", [24, 24])]
)
def test_masked_truncated_row_counts_as_a_row_but_not_its_tokens(
    loss_type: LossType, divisors: list[int]
) -> None:
    config = TrainConfig(loss_type=loss_type, mask_truncated_completions=True)
    rows = make_rows([GROUP], config=config, max_completion_length=8)
    assert [1 / row.weight for row in rows] == pytest.approx(divisors)


def test_masked_truncated_row_keeps_its_part_in_the_mean_of_its_group() -> None:
    whole, masked = (
        make_rows(
            [GROUP],
            config=TrainConfig(mask_truncated_completions=mask),
            max_completion_length=8,
        )
        for mask in (False, True)
    )
    assert [row.advantage for row in masked] == [row.advantage for row in whole[:2]]
