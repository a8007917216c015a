"""The decoder draws what the model itself draws, or is not used."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from node_client.model.decoder import Decoder, can_decode
from node_client.model.sampling import Sampling, sample_completions
from tests.node_client.model.shapes import SHAPE

PROMPTS = [[3, 4, 5, 6, 7, 8, 9], [10, 11], [12, 13, 14]]
FAMILY: dict[str, Callable[[], PreTrainedConfig]] = {
    "qwen2": lambda: Qwen2Config(**SHAPE),
    "qwen3": lambda: Qwen3Config(**SHAPE),
    "llama with biases": lambda: LlamaConfig(**SHAPE, attention_bias=True, mlp_bias=True),
    "llama with stretched positions": lambda: LlamaConfig(
        **SHAPE,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16,
        },
    ),
    "mistral": lambda: MistralConfig(**SHAPE, sliding_window=None),
}


def build(config: PreTrainedConfig) -> PreTrainedModel:
    """Return a model with random weights and biases that are large enough to show."""
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()  # type: ignore[no-any-return, no-untyped-call]


def sample(model: PreTrainedModel, decoder: Decoder | None, sampling: Sampling) -> Any:
    with torch.inference_mode():
        return sample_completions(
            model, PROMPTS, sampling=sampling, eos_ids=torch.tensor([2]), pad_id=0, decoder=decoder
        )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", FAMILY)
def test_decoder_draws_the_same_tokens_as_the_model(name: str, temperature: float) -> None:
    model = build(FAMILY[name]())
    assert can_decode(model, pad_id=0)
    drawn = [
        sample(
            model,
            decoder,
            Sampling(8, 24, temperature, generator=torch.Generator().manual_seed(1)),
        )
        for decoder in (None, Decoder(model, dtype=torch.float32))
    ]
    (tokens, logprobs), (decoded, decoded_logprobs) = drawn
    assert torch.equal(tokens, decoded)
    assert torch.allclose(logprobs, decoded_logprobs, atol=1e-4)
    if temperature:
        assert (tokens == 2).any()  # rows ended, and were dropped before the others


def test_bf16_decoder_draws_the_same_greedy_token_as_the_model() -> None:
    model = build(FAMILY["qwen2"]())
    greedy = Sampling(1, 1, 0.0)
    halved, _ = sample(model, Decoder(model, dtype=torch.bfloat16), greedy)
    assert torch.equal(halved, sample(model, None, greedy)[0])


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(**SHAPE, sliding_window=4),
        LlamaConfig(**SHAPE, hidden_act="gelu"),
    ],
    ids=["sliding window", "another activation"],
)
def test_unsupported_architecture_is_sampled_without_the_decoder(config: PreTrainedConfig) -> None:
    assert not can_decode(build(config), pad_id=0)


def test_model_with_an_adapter_is_sampled_without_the_decoder() -> None:
    class Adapter(nn.Linear):
        pass

    model = build(FAMILY["qwen2"]())
    cast(Any, model.base_model).layers[0].self_attn.q_proj = Adapter(32, 32)
    assert not can_decode(model, pad_id=0)


def test_layer_with_a_different_computation_is_detected() -> None:
    model = build(FAMILY["qwen2"]())
    cast(Any, model.base_model).layers[1].mlp.register_forward_hook(
        lambda _, __, output: output * 2
    )
    assert not can_decode(model, pad_id=0)
