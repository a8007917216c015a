"""Log-probs computed by pieces of the vocabulary equal those of all logits together."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from node_client.model import head
from node_client.model.head import token_logprobs

ROWS, HIDDEN, VOCABULARY = 6, 8, 23


def whole_logprobs(layer: nn.Linear, states: Tensor, tokens: Tensor, temperature: float) -> Tensor:
    return -cross_entropy(layer(states).float() / temperature, tokens, reduction="none")


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    states = torch.randn(ROWS, HIDDEN, requires_grad=True)
    return states, torch.randint(VOCABULARY, (ROWS,)), torch.randn(ROWS)


@pytest.mark.parametrize("bias", [True, False], ids=["with bias", "without"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("piece", [1, ROWS * 5, 2**22])
def test_log_probs_and_gradients_equal_those_of_all_logits(
    monkeypatch: pytest.MonkeyPatch, piece: int, temperature: float, bias: bool
) -> None:
    monkeypatch.setattr(head, "PIECE", piece)
    states, tokens, weights = inputs()
    layer = nn.Linear(HIDDEN, VOCABULARY, bias=bias)
    expected = whole_logprobs(layer, states, tokens, temperature)
    found = token_logprobs(layer, states, tokens, temperature=temperature)
    assert torch.allclose(found, expected, atol=1e-5)
    sources = [states, *layer.parameters()]
    exact = torch.autograd.grad(expected @ weights, sources)
    for one, other in zip(torch.autograd.grad(found @ weights, sources), exact, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_products_have_the_type_of_autocast() -> None:
    states, tokens, weights = inputs()
    layer = nn.Linear(HIDDEN, VOCABULARY)
    with torch.autocast("cpu", torch.bfloat16):
        expected = whole_logprobs(layer, states, tokens, 1.0)
        found = token_logprobs(layer, states, tokens, temperature=1.0)
    assert torch.allclose(found, expected, atol=1e-5)
    exact = torch.autograd.grad(expected @ weights, [states, layer.weight])
    gradients = torch.autograd.grad(found @ weights, [states, layer.weight])
    for one, other in zip(gradients, exact, strict=True):
        assert one.dtype == torch.float32
        assert torch.allclose(one, other, atol=0.02)


def test_frozen_head_gets_no_gradient() -> None:
    states, tokens, weights = inputs()
    layer = nn.Linear(HIDDEN, VOCABULARY).requires_grad_(False)
    found = token_logprobs(layer, states, tokens, temperature=1.0)
    torch.autograd.backward(found @ weights)
    assert states.grad is not None
    assert layer.weight.grad is None
