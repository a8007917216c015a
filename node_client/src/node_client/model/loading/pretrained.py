"""Loads models by name or path, saves them as folders, and restores their weights."""

import os
import warnings
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from node_client.errors import ModelUnavailableError
from node_client.model.adapters import (
    base_model_of,
    check_adapters,
    has_adapters,
    has_saved_adapters,
    load_adapters,
    merge_into,
)
from node_client.model.devices import choose_device
from node_client.model.halves import Remainders, full_precision, split
from node_client.model.loading.contents import count_parameters, first_line, unusable
from node_client.model.loading.hub import fetch_model
from node_client.model.loading.progress import OnProgress, ignore_progress, reporting_tensors
from node_client.model.memory.estimates import check_memory
from node_client.storage.export import ADAPTER_CONFIG

# A bar that redraws itself garbles the panel and every log.
logging.disable_progress_bar()  # type: ignore[no-untyped-call]

BASE_MODELS = Path(__file__).parents[1] / "base_models"
DEMO_BASES = ("tiny", "small", "tiny-rare", "small-rare")
# transformers, peft, safetensors and torch raise all of these for problems that the user can fix.
_PROBLEMS = (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError)


def load_pretrained(
    name_or_path: str, *, device: str, on_progress: OnProgress = ignore_progress
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model and its tokenizer: a transformers causal LM, or one of the `DEMO_BASES`.

    `name_or_path` is a name on the hub, a path, or a demo base. The device `auto` is the fastest
    available. Weights are float32, because half precision loses small updates.
    A folder of adapters is loaded as their base model with the adapters merged.

    Raises ModelUnavailableError if the model cannot be found or loaded, or its tokenizer has no
    end-of-sequence token; SettingsError if the device is not available, or adapters need peft,
    which is missing; and MemoryExhaustedError if the headers of safetensors files show that the
    weights are too large for the device.
    """
    target, source = choose_device(device), _find_source(name_or_path, on_progress=on_progress)
    if has_saved_adapters(source):
        return _load_merged(source, name_or_path, device=device, on_progress=on_progress)
    parameters = count_parameters(source, name=name_or_path)
    if parameters is not None:
        check_memory(name_or_path, parameters * torch.float32.itemsize, device=target)
    try:
        with reporting_tensors(on_progress):
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True)
            model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
                source, dtype=torch.float32, local_files_only=True
            )
        torch.nn.Module.to(model, target)
    except _PROBLEMS as problem:
        raise _unavailable(name_or_path, problem) from problem
    if tokenizer.eos_token_id is None:
        raise ModelUnavailableError(
            f"The tokenizer of {name_or_path} has no end-of-sequence token.",
            fix="Choose a model whose tokenizer names one, such as an instruction-tuned model.",
        )
    return model, tokenizer


def merge_adapters(folder: Path, out: Path) -> None:
    """Merge a folder's adapters into their base model, and write the result to the folder `out`.

    Raises the errors of `load_pretrained`, and OSError when `out` cannot be written.
    """
    model, tokenizer = load_pretrained(str(folder), device="cpu")
    try:
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    except SafetensorError as problem:  # safetensors' error for a full disk
        raise OSError(str(problem)) from problem


def save_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    remainders: Remainders,
) -> None:
    """Write model and tokenizer as a folder that transformers can read.

    A model with adapters is written as its adapters only. Weights that are stored in halves are
    written as float32; `remainders` has the remainder of each of them.
    """
    with full_precision(remainders), warnings.catch_warnings():
        # peft misses the base model's configuration if the base model is a folder of adapters.
        warnings.filterwarnings("ignore", "Could not find a config file", UserWarning)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def load_weights(model: PreTrainedModel, folder: Path, *, remainders: Remainders) -> None:
    """Overwrite the model's parameters with the weights that `save_model` wrote.

    The parameters stay the same objects. `remainders`, which belong to weights stored in halves,
    are overwritten too. Raises CheckpointError if only the folder or only the model has adapters,
    or if both have adapters of different shapes or layers.
    """
    check_adapters(model, folder)
    if has_adapters(model):
        load_adapters(model, folder)
        return
    saved = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
    model.load_state_dict(saved)
    for name, parameter in model.named_parameters():
        if parameter in remainders:
            split(saved[name].clone(), half=parameter.detach(), remainder=remainders[parameter])


def _load_merged(
    folder: Path, name: str, *, device: str, on_progress: OnProgress
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the base model of a folder's adapters, and merge the adapters into it.

    `name` is the name or path that the user gave. Raises the errors of `load_pretrained`.
    """
    try:
        base_name = base_model_of(folder)
    except (*_PROBLEMS, TypeError):
        raise unusable(
            name, f"its {ADAPTER_CONFIG} cannot be read or names no base model"
        ) from None
    if not any(folder.glob("adapter_model.*")):  # peft would look for them on the hub
        raise unusable(name, "its adapters have no weights (adapter_model.safetensors)")
    base, tokenizer = load_pretrained(base_name, device=device, on_progress=on_progress)
    try:
        merged = merge_into(base, folder)
    except (*_PROBLEMS, TypeError) as problem:
        raise _unavailable(name, problem) from problem
    # New adapters record this name as their base model; the base alone would be another model.
    merged.name_or_path = str(folder)
    return merged, tokenizer


def _find_source(name_or_path: str, *, on_progress: OnProgress) -> Path:
    """Return the folder of a model, downloaded if necessary. Raises ModelUnavailableError."""
    if name_or_path in DEMO_BASES:
        return BASE_MODELS / name_or_path
    if os.path.exists(name_or_path):
        return Path(name_or_path).absolute()  # adapters record it as their base model
    return fetch_model(name_or_path, on_progress=on_progress)


def _unavailable(name: str, problem: Exception) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"The model {name} could not be loaded: {first_line(problem)}",
        fix="Check the name on huggingface.co or the path, the network, and free memory and disk; "
        "`--model tiny` works without a download.",
    )
