"""The table of models, and which of them fit on a machine."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

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
# Numbers on the models' own pages, in millions.
PUBLISHED = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": 134.5,
    "Qwen/Qwen2.5-0.5B-Instruct": 494.0,
    "Qwen/Qwen2.5-7B-Instruct": 7615.6,
    "meta-llama/Llama-3.2-1B-Instruct": 1235.8,
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": 1100.0,
}


@pytest.mark.parametrize("candidate", KNOWN_MODELS, ids=lambda candidate: candidate.name)
def test_parameters_are_those_of_the_model_in_transformers(candidate: KnownModel) -> None:
    sizes: dict[str, Any] = {
        "num_hidden_layers": candidate.layers,
        "hidden_size": candidate.hidden,
        "num_attention_heads": candidate.heads,
        "num_key_value_heads": candidate.kv_heads,
        "head_dim": candidate.head,
        "intermediate_size": candidate.intermediate,
        "vocab_size": candidate.vocabulary,
        "tie_word_embeddings": candidate.tied,
    }
    with torch.device("meta"):
        if candidate.normed:
            model: torch.nn.Module = Qwen3ForCausalLM(Qwen3Config(**sizes))
        elif candidate.biased:
            model = Qwen2ForCausalLM(Qwen2Config(**sizes))
        else:
            model = LlamaForCausalLM(LlamaConfig(**sizes))
    assert candidate.parameters == sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(name: str) -> None:
    [candidate] = [each for each in KNOWN_MODELS if each.name == name]
    assert candidate.parameters / 1e6 == pytest.approx(PUBLISHED[name], rel=1e-3)


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
