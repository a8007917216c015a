"""The optimizer is the one that was asked for."""

import sys

import pytest

from node_client.errors import SettingsError
from node_client.learning.optimizer import begin_training
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim.adamw", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(SettingsError, match="needs bitsandbytes") as caught:
        begin_training(toy_policy(), TrainConfig(optimizer="adamw_8bit"))
    assert "pip install bitsandbytes" in caught.value.fix


def test_checkpointing_is_switched_on() -> None:
    policy = toy_policy()
    begin_training(policy, TrainConfig(gradient_checkpointing=True))
    assert not policy.shares_prompts
