"""The table of models, and which of them fit on a machine."""

import re
from dataclasses import replace

import pytest

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
