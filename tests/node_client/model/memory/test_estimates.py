"""Training starts with as many tokens at once as fit into the free memory."""

import pytest

from node_client.learning.optimizer import begin_training
from node_client.model.memory import estimates
from node_client.model.memory.estimates import Shape, fitting_share, resident_bytes, token_bytes
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy

# Qwen2.5-0.5B.
SHAPE = Shape(
    layers=24, hidden=896, intermediate=4864, parameters=494_000_000, trainable=494_000_000
)
GB = 10**9


def share(free: int, *, resident: int = 0, tokens: int = 4096) -> float:
    per_token = token_bytes(SHAPE, checkpointed=False, half_precision=False)
    return fitting_share(tokens, free=free, resident=resident, per_token=per_token)


def test_all_tokens_run_at_once_if_there_is_enough_memory() -> None:
    assert share(100 * GB) == 1.0


def test_tokens_are_halved_until_they_fit() -> None:
    shares = [share(gigabytes * GB) for gigabytes in (2, 4, 8, 16, 32)]
    assert shares == sorted(shares)
    assert all(each in {2.0**-n for n in range(13)} for each in shares)
    assert shares[0] < shares[-1]


def test_memory_of_gradients_and_optimizer_is_subtracted_first() -> None:
    full = resident_bytes(SHAPE, state_bytes=8, copied=False)
    assert full == 12 * SHAPE.parameters
    assert share(16 * GB, resident=full) < share(16 * GB)


def test_one_token_is_tried_even_with_too_little_memory() -> None:
    assert 0 < share(0, tokens=256) <= 1 / 256


def test_checkpointed_and_half_precision_activations_need_less_memory() -> None:
    plain = token_bytes(SHAPE, checkpointed=False, half_precision=False)
    assert token_bytes(SHAPE, checkpointed=False, half_precision=True) == plain / 2
    assert token_bytes(SHAPE, checkpointed=True, half_precision=False) < plain / 5


def test_training_starts_with_the_share_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "free_bytes", lambda device: 300_000_000)
    policy = toy_policy()
    begin_training(policy, TrainConfig(micro_batch_tokens=65_536))
    assert policy.update_budget.share < 1


def test_warning_about_too_little_memory_contains_advice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(estimates, "free_bytes", lambda device: 1000)
    begin_training(toy_policy(), TrainConfig())
    assert "lora_r" in caplog.text
