"""Finds the resources of this machine, and the models that can be trained on it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from node_client.commands.init.table import KNOWN_MODELS, KnownModel
from node_client.model.devices import choose_autocast
from node_client.model.memory.estimates import Shape, free_bytes, needed_bytes

# A prompt and a long answer: a model fits if it can be trained on this many tokens at once.
TOKENS_AT_ONCE = 1024
# AdamW keeps two 4-byte numbers per parameter.
STATE_BYTES = 8
# A checkpoint has the weights and the optimizer's state. Two are kept, the best one, and during a
# save the next one. Files from the hub have two bytes per parameter.
CHECKPOINT_BYTES = 12
CHECKPOINTS = 4
DOWNLOAD_BYTES = 2


@dataclass(frozen=True)
class Machine:
    """The resources of a machine, with sizes in bytes.

    `device` is the type of torch's device. `free` is the free memory to train in: that of the GPU
    for `cuda`, otherwise that of the machine. `memory` is the total RAM, and `disk` the free space
    for checkpoints. `battery` says whether the machine has a battery.
    """

    device: str
    title: str
    free: int
    memory: int
    disk: int
    cores: int
    battery: bool


@dataclass(frozen=True)
class Fit:
    """Whether a model can be trained here.

    `needed` is the memory that it needs, in bytes. `lacking` says in words what this machine lacks,
    and is empty if the model fits.
    """

    model: KnownModel
    needed: int
    lacking: str = ""


def inspect_machine(folder: Path) -> Machine:
    """Return the machine's resources.

    `disk` is the free space on the disk of `folder`, in which checkpoints will be saved. The folder
    need not exist yet.
    """
    if torch.cuda.is_available():
        device, title = "cuda", torch.cuda.get_device_name()
    elif torch.backends.mps.is_available():
        device, title = "mps", "Apple GPU"
    else:
        device, title = "cpu", "no GPU"
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    read_battery = getattr(psutil, "sensors_battery", None)
    return Machine(
        device=device,
        title=title,
        free=free_bytes(torch.device(device)),
        memory=psutil.virtual_memory().total,
        disk=shutil.disk_usage(existing).free,
        cores=os.cpu_count() or 1,
        battery=read_battery is not None and read_battery() is not None,
    )


def fit_models(machine: Machine, *, fraction: float = 1.0) -> list[Fit]:
    """Return for each model of KNOWN_MODELS, in order, whether it can be trained on the machine.

    A model must fit on the disk, and into `fraction` of the free memory (`machine.free`).
    """
    return [_fit(model, machine, free=int(fraction * machine.free)) for model in KNOWN_MODELS]


def choose_model(fits: list[Fit], *, device: str) -> str:
    """Return the name of the model to propose.

    On a CPU, it is the smallest model that fits. On any other device, it is the largest. Models
    whose licence must be accepted on the hub are not proposed. If no model is left, the proposal is
    the demo model `tiny`.
    """
    fitting = [fit.model for fit in fits if not fit.lacking and not fit.model.gated]
    if not fitting:
        return "tiny"
    choose = min if device == "cpu" else max
    return choose(fitting, key=lambda model: model.parameters).name


def _fit(model: KnownModel, machine: Machine, *, free: int) -> Fit:
    parameters = model.parameters
    shape = Shape(
        layers=model.layers,
        hidden=model.hidden,
        intermediate=model.intermediate,
        parameters=parameters,
        trainable=parameters,
    )
    device = torch.device(machine.device)
    dtype = choose_autocast("auto", device=device, parameters=parameters)
    needed = needed_bytes(
        shape, tokens=TOKENS_AT_ONCE, state_bytes=STATE_BYTES, half_precision=dtype is not None
    )
    disk = (DOWNLOAD_BYTES + CHECKPOINTS * CHECKPOINT_BYTES) * parameters
    if needed > free:
        return Fit(model, needed, f"lacks {(needed - free) / 1e9:.1f} GB")
    if disk > machine.disk:
        return Fit(model, needed, f"lacks {(disk - machine.disk) / 1e9:.1f} GB of disk")
    return Fit(model, needed)
