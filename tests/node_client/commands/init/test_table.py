"""The table of models, and which of them fit on a machine."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from node_client.commands.init.machine import Machine, choose_model, fit_models
from node_client.commands.init.table import KNOWN_MODELS, KnownModel
from node_client.model.memory.estimates import (
    Shape,
    fitting_share,
    needed_bytes,
    resident_bytes,
    token_bytes,
)

GB = 10**9
MACHINE = Machine(
    device="cuda", title="GPU", free=24 * GB, memory=64 * GB, disk=500 * GB, cores=8, battery=False
)


# The rest of each config.json: heads, heads of keys and values, the size of a head, vocabulary, and
# whether input and output share their embeddings.
CONFIGS: dict[str, tuple[type[Any], int, int, int, int, bool]] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": (LlamaConfig, 9, 3, 64, 49152, True),
    "HuggingFaceTB/SmolLM2-360M-Instruct": (LlamaConfig, 15, 5, 64, 49152, True),
    "Qwen/Qwen2.5-0.5B-Instruct": (Qwen2Config, 14, 2, 64, 151936, True),
    "Qwen/Qwen3-0.6B": (Qwen3Config, 16, 8, 128, 151936, True),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": (LlamaConfig, 32, 4, 64, 32000, False),
    "meta-llama/Llama-3.2-1B-Instruct": (LlamaConfig, 32, 8, 64, 128256, True),
    "Qwen/Qwen2.5-1.5B-Instruct": (Qwen2Config, 12, 2, 128, 151936, True),
    "HuggingFaceTB/SmolLM2-1.7B-Instruct": (LlamaConfig, 32, 32, 64, 49152, True),
    "Qwen/Qwen2.5-3B-Instruct": (Qwen2Config, 16, 2, 128, 151936, True),
    "meta-llama/Llama-3.2-3B-Instruct": (LlamaConfig, 24, 8, 128, 128256, True),
    "Qwen/Qwen3-4B": (Qwen3Config, 32, 8, 128, 151936, True),
    "Qwen/Qwen2.5-7B-Instruct": (Qwen2Config, 28, 4, 128, 152064, False),
}


@pytest.mark.parametrize("candidate", KNOWN_MODELS, ids=lambda candidate: candidate.name)
def test_parameters_are_those_of_the_model_in_transformers(candidate: KnownModel) -> None:
    kind, heads, kv_heads, head, vocabulary, tied = CONFIGS[candidate.name]
    config = kind(
        num_hidden_layers=candidate.layers,
        hidden_size=candidate.hidden,
        intermediate_size=candidate.intermediate,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head,
        vocab_size=vocabulary,
        tie_word_embeddings=tied,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    assert candidate.parameters == sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("candidate", KNOWN_MODELS, ids=lambda candidate: candidate.name)
def test_parameters_are_about_as_many_as_the_name_says(candidate: KnownModel) -> None:
    size, unit = re.findall(r"-([\d.]+)([BM])\b", candidate.name)[-1]
    named = float(size) * {"B": 1e9, "M": 1e6}[unit]
    assert candidate.parameters == pytest.approx(named, rel=0.25)


def test_needed_memory_is_what_training_finds_sufficient() -> None:
    shape = Shape(layers=24, hidden=896, intermediate=4864, parameters=494 * 10**6, trainable=0)
    shape = replace(shape, trainable=shape.parameters)
    needed = needed_bytes(shape, tokens=1024, state_bytes=8, half_precision=True)
    per_token = token_bytes(shape, checkpointed=False, half_precision=True)
    resident = resident_bytes(shape, state_bytes=8, copied=False)
    for spare, share in ((10**6, 1.0), (-(10**8), 0.5)):
        free = needed - 4 * shape.parameters + spare
        assert fitting_share(1024, free=free, resident=resident, per_token=per_token) == share


def test_models_that_do_not_fit_show_what_is_missing() -> None:
    fits = {fit.model.name: fit.lacking for fit in fit_models(MACHINE)}
    assert fits["Qwen/Qwen2.5-0.5B-Instruct"] == ""
    assert re.fullmatch(r"lacks \d+\.\d GB", fits["Qwen/Qwen2.5-7B-Instruct"])
    full = fit_models(replace(MACHINE, disk=10 * GB))
    assert (
        "GB of disk" in {fit.model.name: fit.lacking for fit in full}["Qwen/Qwen2.5-0.5B-Instruct"]
    )


def test_fraction_of_the_memory_fits_fewer_models() -> None:
    whole, half = (
        sum(not fit.lacking for fit in fit_models(MACHINE, fraction=fraction))
        for fraction in (1.0, 0.5)
    )
    assert half < whole


@pytest.mark.parametrize(
    ("machine", "proposed"),
    [
        (replace(MACHINE, free=10**9), "tiny"),
        (replace(MACHINE, device="cpu"), "HuggingFaceTB/SmolLM2-135M-Instruct"),
        (replace(MACHINE, free=200 * GB), "Qwen/Qwen2.5-7B-Instruct"),
    ],
)
def test_largest_fitting_model_is_proposed_with_a_gpu_and_the_smallest_without(
    machine: Machine, proposed: str
) -> None:
    assert choose_model(fit_models(machine), device=machine.device) == proposed
