"""The configured optimizer; AdamW on split weights equals AdamW on float32 weights."""

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from node_client.errors import SettingsError
from node_client.learning import optimizer as optimizers
from node_client.learning.optimizer import HalvesAdamW, begin_training
from node_client.model.halves import Remainders, join, split
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy

RATE = 1e-3


class Pair:
    """The same weights in float32, with torch's AdamW, and split into halves."""

    def __init__(self, *, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.whole = [nn.Parameter(torch.randn(shape)) for shape in ((70, 33), (5,), (1, 7))]
        remainders: dict[nn.Parameter, Tensor] = {}
        self.halves: list[nn.Parameter] = []
        for parameter in self.whole[:2]:
            half = torch.empty_like(parameter, dtype=torch.bfloat16, requires_grad=False)
            remainder = torch.empty_like(half, dtype=torch.int16)
            split(parameter.detach().clone(), half=half, remainder=remainder)
            self.halves.append(nn.Parameter(half))
            remainders[self.halves[-1]] = remainder
        self.halves.append(nn.Parameter(self.whole[2].detach().clone()))
        self.remainders: Remainders = remainders
        self.exact = torch.optim.AdamW(self.whole, lr=RATE, weight_decay=0.0, fused=True)
        self.halved = HalvesAdamW(self.halves, remainders, lr=RATE)

    def give(self, gradients: list[Tensor]) -> None:
        """Give both the same gradients, rounded to what bfloat16 can express in halves."""
        for whole, half, gradient in zip(self.whole, self.halves, gradients, strict=True):
            half.grad = gradient.to(half.dtype)
            whole.grad = half.grad.to(torch.float32, copy=True)

    def weights(self) -> list[Tensor]:
        """Return the float32 numbers that the halves represent."""
        return [
            join(half.detach(), self.remainders[half], out=torch.empty(half.shape))
            if half in self.remainders
            else half.detach()
            for half in self.halves
        ]

    def agrees(self) -> bool:
        return all(map(torch.equal, self.weights(), self.whole))


def gradients(step: int) -> list[Tensor]:
    torch.manual_seed(100 + step)
    return [torch.randn(shape) for shape in ((70, 33), (5,), (1, 7))]


@pytest.mark.parametrize("piece", [optimizers.PIECE, 64])
def test_steps_equal_those_of_torch_on_float32_weights_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(optimizers, "PIECE", piece)
    pair = Pair()
    for step in range(50):
        pair.give(gradients(step))
        pair.exact.step()
        pair.halved.step()
    assert pair.agrees()


def test_updates_too_small_for_bfloat16_accumulate() -> None:
    pair = Pair()
    for group in pair.halved.param_groups:
        group["lr"] = 1e-6
    before = [weights.clone() for weights in pair.weights()]
    for _ in range(100):
        pair.give([torch.ones_like(whole) for whole in pair.whole])
        pair.halved.step()
    for old, new in zip(before, pair.weights(), strict=True):
        assert torch.allclose(old - new, torch.full_like(old, 1e-4), rtol=0.1)


def test_float32_gradients_are_not_rounded() -> None:
    pair = Pair()
    for whole, half, gradient in zip(pair.whole, pair.halves, gradients(0), strict=True):
        half.grad_dtype = torch.float32
        whole.grad = gradient
        half.grad = gradient.clone()
    pair.exact.step()
    pair.halved.step()
    assert pair.agrees()


def test_gradients_are_clipped_to_their_common_norm() -> None:
    pair = Pair()
    pair.give(gradients(0))
    expected = torch.nn.utils.clip_grad_norm_(pair.whole, 0.5)
    assert torch.allclose(pair.halved.clip(0.5), expected)
    pair.exact.step()
    pair.halved.step()
    for weights, whole in zip(pair.weights(), pair.whole, strict=True):
        assert torch.allclose(weights, whole, atol=1e-7)
    moments = [state["exp_avg"].norm() for state in pair.halved.state.values()]
    assert torch.stack(moments).norm().item() == pytest.approx(0.05)


def test_clip_applies_to_one_step() -> None:
    pair = Pair()
    pair.give(gradients(0))
    pair.halved.clip(0.0)
    pair.halved.step()
    assert all(not state["exp_avg"].any() for state in pair.halved.state.values())
    pair.give(gradients(1))
    pair.halved.step()
    assert all(state["exp_avg"].any() for state in pair.halved.state.values())


def test_state_can_be_continued_in_either_precision() -> None:
    pair = Pair()
    pair.give(gradients(0))
    pair.exact.step()
    pair.halved.step()
    states: tuple[dict[str, Any], ...] = (pair.halved.state_dict(), pair.exact.state_dict())
    pair.exact.load_state_dict(states[0])
    pair.halved.load_state_dict(states[1])
    pair.give(gradients(1))
    pair.exact.step()
    pair.halved.step()
    assert pair.agrees()


def test_weights_are_unchanged_if_memory_runs_out_in_the_first_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = Pair()
    pair.give(gradients(0))
    zeros, made = torch.zeros_like, list[Tensor]()

    def run_out(*arguments: Any, **options: Any) -> Tensor:
        if made:
            raise MemoryError
        made.append(zeros(*arguments, **options))
        return made[0]

    monkeypatch.setattr(torch, "zeros_like", run_out)
    with pytest.raises(MemoryError):
        pair.halved.step()
    assert pair.agrees()


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim.adamw", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(SettingsError, match="needs bitsandbytes") as caught:
        begin_training(toy_policy(), TrainConfig(optimizer="adamw_8bit"))
    assert "pip install bitsandbytes" in caught.value.fix


def test_gradient_checkpointing_is_enabled_by_its_setting() -> None:
    policy = toy_policy()
    begin_training(policy, TrainConfig(gradient_checkpointing=True))
    assert not policy.shares_prompts
