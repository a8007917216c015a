"""Rows go through the model in batches that fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from node_client.learning.micro_batches import split_rows


@dataclass(frozen=True)
class Numbered:
    prompt: list[int]
    completion: list[int]
    number: int = 0


def count_tokens(batch: Sequence[Numbered], *, shared_prompts: bool) -> int:
    """Return how many tokens, padding included, the model is run on for a batch."""
    prompts = len({tuple(row.prompt) for row in batch}) if shared_prompts else len(batch)
    prompt_width = max(len(row.prompt) for row in batch)
    completion_width = max(len(row.completion) for row in batch)
    return prompts * prompt_width + len(batch) * completion_width


@pytest.mark.parametrize("shared_prompts", [True, False])
def test_every_row_is_in_one_batch_that_fits(shared_prompts: bool) -> None:
    rows = [Numbered([n % 5] * (1 + n % 5), [2] * (1 + n % 7), n) for n in range(40)]
    batches = list(split_rows(rows, limit=40, shared_prompts=shared_prompts))
    assert sorted(row.number for batch in batches for row in batch) == list(range(40))
    assert all(count_tokens(batch, shared_prompts=shared_prompts) <= 40 for batch in batches)


def test_row_longer_than_the_limit_goes_alone() -> None:
    rows = [Numbered([1] * 50, [2] * 50), Numbered([1], [2])]
    assert [len(batch) for batch in split_rows(rows, limit=10)] == [1, 1]


def test_rows_of_one_prompt_stay_together() -> None:
    rows = [Numbered([prompt] * 4, [2] * length) for length in (5, 1, 3) for prompt in (1, 2)]
    batches = list(split_rows(rows, limit=20, shared_prompts=True))
    assert [{tuple(row.prompt) for row in batch} for batch in batches] == [
        {(1, 1, 1, 1)},
        {(2, 2, 2, 2)},
    ]


def test_shared_prompt_counts_once() -> None:
    rows = [Numbered([1] * 10, [2] * 3)] * 4
    assert [len(batch) for batch in split_rows(rows, limit=22, shared_prompts=True)] == [4]
    assert [len(batch) for batch in split_rows(rows, limit=51)] == [3, 1]
