"""The weight of each completion in the loss, and the split of rows into micro-batches that fit."""

from collections.abc import Sequence

import pytest

from node_client.learning.rollouts import TrainingGroup
from node_client.learning.update.rows import TrainingRow, make_rows, split_rows
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
def test_loss_type_determines_the_weight_of_a_token(
    loss_type: LossType, divisors: list[int]
) -> None:
    rows = make_rows([GROUP], config=TrainConfig(loss_type=loss_type, max_completion_length=8))
    assert [1 / row.weight for row in rows] == pytest.approx(divisors)


@pytest.mark.parametrize(
    ("loss_type", "divisors"), [("dapo", [5, 5]), ("grpo", [9, 6]), ("dr_grpo", [24, 24])]
)
def test_masked_truncated_row_counts_as_a_row_but_its_tokens_do_not(
    loss_type: LossType, divisors: list[int]
) -> None:
    config = TrainConfig(
        loss_type=loss_type, mask_truncated_completions=True, max_completion_length=8
    )
    rows = make_rows([GROUP], config=config)
    assert [1 / row.weight for row in rows] == pytest.approx(divisors)


def test_masked_truncated_row_counts_in_the_mean_of_its_group() -> None:
    whole, masked = (
        make_rows([GROUP], config=TrainConfig(mask_truncated_completions=mask))
        for mask in (False, True)
    )
    assert [row.advantage for row in masked] == [row.advantage for row in whole[:2]]


def row(prompt: list[int], completion: list[int], *, number: float = 0.0) -> TrainingRow:
    return TrainingRow(prompt, completion, advantage=number, weight=1.0)


def count_tokens(batch: Sequence[TrainingRow], *, shared_prompts: bool) -> int:
    """Return the number of tokens, including padding, that the model processes for a batch."""
    prompts = len({tuple(each.prompt) for each in batch}) if shared_prompts else len(batch)
    prompt_width = max(len(each.prompt) for each in batch)
    completion_width = max(len(each.completion) for each in batch)
    return prompts * prompt_width + len(batch) * completion_width


@pytest.mark.parametrize("shared_prompts", [True, False])
def test_every_row_is_in_exactly_one_batch_that_fits(shared_prompts: bool) -> None:
    rows = [row([n % 5] * (1 + n % 5), [2] * (1 + n % 7), number=n) for n in range(40)]
    batches = list(split_rows(rows, limit=40, shared_prompts=shared_prompts))
    assert sorted(each.advantage for batch in batches for each in batch) == list(range(40))
    assert all(count_tokens(batch, shared_prompts=shared_prompts) <= 40 for batch in batches)


def test_row_longer_than_the_limit_gets_a_batch_of_its_own() -> None:
    rows = [row([1] * 50, [2] * 50), row([1], [2])]
    assert [len(batch) for batch in split_rows(rows, limit=10)] == [1, 1]


def test_rows_of_one_prompt_are_in_the_same_batch() -> None:
    rows = [row([prompt] * 4, [2] * length) for length in (5, 1, 3) for prompt in (1, 2)]
    batches = list(split_rows(rows, limit=20, shared_prompts=True))
    assert [{tuple(each.prompt) for each in batch} for batch in batches] == [
        {(1, 1, 1, 1)},
        {(2, 2, 2, 2)},
    ]


def test_shared_prompt_counts_once() -> None:
    rows = [row([1] * 10, [2] * 3)] * 4
    assert [len(batch) for batch in split_rows(rows, limit=22, shared_prompts=True)] == [4]
    assert [len(batch) for batch in split_rows(rows, limit=51)] == [3, 1]
