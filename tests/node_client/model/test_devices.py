"""A model computes in the requested precision, or in the one that pays off."""

import pytest
import torch

from node_client.model import devices
from node_client.model.devices import MIN_CAST_PARAMETERS, choose_autocast
from tests.node_client.fakes import toy_policy

CPU = torch.device("cpu")


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("parameters", [MIN_CAST_PARAMETERS, MIN_CAST_PARAMETERS - 1])
def test_auto_uses_bf16_for_large_models_on_hardware_with_fast_bf16(
    parameters: int, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_has_fast_bf16", lambda device: fast)
    expected = torch.bfloat16 if fast and parameters == MIN_CAST_PARAMETERS else None
    assert choose_autocast("auto", device=CPU, parameters=parameters) == expected


def test_explicit_precision_is_used() -> None:
    assert choose_autocast("bf16", device=CPU, parameters=1) == torch.bfloat16
    assert choose_autocast("fp32", device=CPU, parameters=10**12) is None


def test_weights_and_gradients_are_float32_under_autocast() -> None:
    policy = toy_policy()
    policy.set_precision("bf16")
    logprobs, _ = policy.logprobs([[5, 6]], [[7, 8]])
    exact, _ = toy_policy().logprobs([[5, 6]], [[7, 8]])
    logprobs.sum().backward()  # type: ignore[no-untyped-call]
    assert not torch.equal(logprobs, exact)
    assert torch.allclose(logprobs, exact, atol=0.1)
    assert {
        parameter.grad.dtype for parameter in policy.trainable() if parameter.grad is not None
    } == {torch.float32}
