"""Sampling in batches: they shrink when memory runs out, and nothing else changes."""

from typing import Any

import pytest

from node_client.errors import MemoryExhaustedError
from node_client.model.sampling import Sampling, sample_completions
from tests.node_client.fakes import toy_policy

FULL = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.")
QUESTIONS = [f"{n} + {n}?" for n in range(8)]
COPIES = 4


class Cramped:
    """Samples if there are few enough rows, and records how many were tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, rows: int) -> None:
        self.rows = rows
        self.tried: list[int] = []
        monkeypatch.setattr("node_client.model.policy.sample_completions", self.sample)

    def sample(self, model: Any, prompts: Any, *, sampling: Sampling, **options: Any) -> Any:
        self.tried.append(len(prompts) * sampling.completions)
        if self.tried[-1] > self.rows:
            raise FULL
        return sample_completions(model, prompts, sampling=sampling, **options)


def answers_of(policy: Any) -> list[list[str]]:
    given = policy.generate(QUESTIONS, completions=COPIES, max_new_tokens=4, temperature=0)
    return [[one.text for one in row] for row in given]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [12, 3, 1])
def test_answers_are_the_same_in_smaller_batches(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    expected = answers_of(toy_policy())
    cramped = Cramped(monkeypatch, rows=rows)
    assert answers_of(toy_policy()) == expected
    assert min(cramped.tried) <= rows


def test_first_failure_halves_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    cramped = Cramped(monkeypatch, rows=16)
    answers_of(toy_policy())
    assert cramped.tried[:2] == [32, 16]


@pytest.mark.slow
def test_next_batch_starts_with_the_size_that_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, cramped = toy_policy(), Cramped(monkeypatch, rows=3)
    answers_of(policy)
    cramped.tried.clear()
    answers_of(policy)
    assert max(cramped.tried) <= 3


@pytest.mark.slow
def test_smaller_sampling_batches_do_not_affect_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, _ = toy_policy(), Cramped(monkeypatch, rows=3)
    answers_of(policy)
    assert policy.sampling_budget.share < policy.update_budget.share == 1


@pytest.mark.slow
def test_sampling_that_never_fits_ends_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    Cramped(monkeypatch, rows=0)
    with pytest.raises(MemoryExhaustedError, match="in sampling") as caught:
        answers_of(toy_policy())
    for setting in ("max_completion_length", "num_generations", "lora_r", "smaller model"):
        assert setting in caught.value.fix
    assert "micro_batch_tokens" not in caught.value.fix


def test_other_errors_are_not_treated_as_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr("node_client.model.policy.sample_completions", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        answers_of(toy_policy())
