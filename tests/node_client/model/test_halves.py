"""Split weights equal the float32 weights bit for bit, and compute what autocast computes."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM

from node_client.learning.optimizer import begin_training
from node_client.model.halves import full_precision, join, split
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy

BF16 = TrainConfig(precision="bf16")
PROMPTS = [[5, 6, 7], [5, 6, 7], [8, 9]]
COMPLETIONS = [[10, 11, 1], [12, 1], [13, 14]]


def of_bits(bits: int) -> Tensor:
    return torch.tensor([bits], dtype=torch.int64).to(torch.int32).view(torch.float32)


def halves_of(whole: Tensor) -> tuple[Tensor, Tensor]:
    half = torch.empty_like(whole, dtype=torch.bfloat16)
    remainder = torch.empty_like(whole, dtype=torch.int16)
    split(whole.clone(), half=half, remainder=remainder)
    return half, remainder


def policy_with_rounded_rows() -> Policy:
    """Return a policy whose embeddings bf16 does not round, because autocast does not either."""
    policy = toy_policy()
    rows = policy._model.get_input_embeddings().weight
    rows.data = rows.data.bfloat16().float()
    return policy


def halved_policy() -> Policy:
    policy = policy_with_rounded_rows()
    begin_training(policy, BF16)
    return policy


@given(st.integers(0, 2**32 - 1))
def test_every_float32_is_restored_bit_for_bit(bits: int) -> None:
    whole = of_bits(bits)
    half, remainder = halves_of(whole)
    again = join(half, remainder, out=torch.empty_like(whole))
    assert torch.equal(again.view(torch.int32), whole.view(torch.int32))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_halves_are_rounded_to_nearest(value: float) -> None:
    whole = torch.tensor([value], dtype=torch.float32)
    half, remainder = halves_of(whole)
    # Halfway between two values, torch rounds to even, which a 16-bit remainder cannot express.
    if remainder.item() != -(2**15):
        assert torch.equal(half, whole.bfloat16())
    else:
        assert abs(half.double() - whole.double()) == abs(
            whole.bfloat16().double() - whole.double()
        )


def test_halved_policy_computes_what_autocast_computes() -> None:
    cast, halved = policy_with_rounded_rows(), halved_policy()
    cast.set_precision("bf16")
    expected, found = (policy.logprobs(PROMPTS, COMPLETIONS)[0] for policy in (cast, halved))
    assert torch.equal(found, expected)
    expected.sum().backward()  # type: ignore[no-untyped-call]
    found.sum().backward()  # type: ignore[no-untyped-call]
    for exact, weight in zip(cast.trainable(), halved.trainable(), strict=True):
        assert exact.grad is not None
        assert weight.grad is not None
        assert torch.allclose(weight.grad.float(), exact.grad, rtol=2**-7, atol=1e-6)


def test_only_norms_stay_in_float32() -> None:
    policy = halved_policy()
    whole = [p for p in policy.trainable() if p.dtype == torch.float32]
    assert policy.remainders
    assert all(parameter.dim() == 1 for parameter in whole)  # norms


def test_halved_policy_generates_what_autocast_generates() -> None:
    cast, halved = policy_with_rounded_rows(), halved_policy()
    cast.set_precision("bf16")
    answers = [
        policy.generate(["1 + 1", "2 + 2?"], completions=2, max_new_tokens=6, temperature=0)
        for policy in (cast, halved)
    ]
    assert answers[0] == answers[1]


def test_halved_policy_loads_and_saves_float32_weights_bit_for_bit(tmp_path: Path) -> None:
    plain, halved = toy_policy(seed=1), halved_policy()
    plain.save(tmp_path / "plain")
    halved.load_weights(tmp_path / "plain")
    halved.save(tmp_path / "halved")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "halved")
    assert saved.dtype == torch.float32
    for one, other in zip(saved.parameters(), plain.trainable(), strict=True):
        assert torch.equal(one, other)
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "halved")]
    assert files[0] == files[1]


def test_reference_of_a_kl_term_is_the_initial_halved_model() -> None:
    policy = toy_policy()
    begin_training(policy, TrainConfig(precision="bf16", beta=0.1))
    expected = policy.logprobs(PROMPTS, COMPLETIONS)[0]
    with torch.no_grad():
        for parameter in policy.trainable():
            parameter.add_(1.0)
    assert torch.equal(policy.reference_logprobs(PROMPTS, COMPLETIONS), expected)


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(precision="fp32"),
        TrainConfig(precision="fp16"),
        TrainConfig(precision="bf16", lora_r=2),
    ],
    ids=["float32", "float16", "adapters"],
)
def test_other_training_does_not_split_its_weights(config: TrainConfig) -> None:
    policy = toy_policy()
    begin_training(policy, config)
    assert not policy.remainders
    assert {parameter.dtype for parameter in policy.trainable()} == {torch.float32}


def test_gradient_of_a_lookup_is_summed_in_float32() -> None:
    policy = halved_policy()
    embedding = policy._model.get_input_embeddings()
    ids = torch.tensor([[3] * 300 + [4]])
    head = policy._model.get_output_embeddings()  # type: ignore[no-untyped-call]
    rows = embedding(ids)
    with policy._autocast():
        loss = (rows / 256).sum() + 0 * head(rows).sum()
    loss.backward()
    assert isinstance(embedding.weight, torch.Tensor)
    gradient = embedding.weight.grad
    assert gradient is not None
    assert torch.equal(gradient[3], torch.full_like(gradient[3], 300 / 256))
    assert torch.equal(gradient[4], torch.full_like(gradient[4], 1 / 256))


def test_weights_are_joined_only_temporarily() -> None:
    policy = halved_policy()
    (parameter, *_) = policy.remainders
    before = parameter.data
    with full_precision(policy.remainders):
        assert parameter.dtype == torch.float32
    assert parameter.data.data_ptr() == before.data_ptr()
