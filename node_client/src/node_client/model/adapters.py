"""Low-rank adapters (LoRA, arXiv 2106.09685): small weights that peft adds to a model's layers."""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import PreTrainedModel

from node_client.errors import CheckpointError, SettingsError
from node_client.storage.export import ADAPTER_CONFIG

# The file in which `save_pretrained` writes adapters.
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
_ALL = "all-linear"


def add_adapters(
    model: PreTrainedModel, *, rank: int, alpha: int, target_modules: Sequence[str]
) -> None:
    """Add new adapters to the layers named in `target_modules`, and freeze all other weights.

    If `target_modules` is empty, all linear layers except the output layer get adapters. New
    adapters do not change the model's output, and are the same in every run. Raises SettingsError
    if peft is not installed, or the model has none of the named layers.
    """
    try:
        from peft import LoraConfig
    except ImportError as problem:
        raise SettingsError(
            "Training adapters needs peft, which is not installed.",
            fix="pip install peft, or leave lora_r at 0.",
        ) from problem
    adapters = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        target_modules=list(target_modules) or _ALL,
        task_type="CAUSAL_LM",
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model.add_adapter(adapters)
    except ValueError as problem:
        raise SettingsError(
            f"Adapters do not fit this model: {problem}",
            fix="Name layers that it has in lora_target_modules, or none for all linear ones.",
        ) from problem
    model.eval()  # type: ignore[no-untyped-call]


def has_adapters(model: PreTrainedModel) -> bool:
    """Return whether a model has adapters."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


@contextmanager
def adapters_disabled(model: PreTrainedModel) -> Iterator[None]:
    """Run the model without its adapters inside the block."""
    model.disable_adapters()
    try:
        yield
    finally:
        model.enable_adapters()


def check_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Raise CheckpointError if only the saved folder or only the model has adapters."""
    saved = has_saved_adapters(folder)
    if saved != has_adapters(model):
        trained, requested = ("adapters", "all weights") if saved else ("all weights", "adapters")
        raise CheckpointError(
            f"{folder} was trained with {trained}, but this run trains {requested}.",
            fix="Set lora_r as it was, use another --state-dir, or --fresh to start over.",
        )


def load_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Load a folder's adapters into the adapters that the model already has.

    Raises CheckpointError if the saved adapters have other shapes or layers than those of the
    model.
    """
    from peft import set_peft_model_state_dict

    try:
        weights = load_file(folder / _ADAPTER_WEIGHTS)
        result: Any = set_peft_model_state_dict(model, weights)
    except RuntimeError as problem:
        raise CheckpointError(
            f"The adapters in {folder} are of another shape: {problem}",
            fix="Set lora_r and lora_target_modules as they were, or use another --state-dir.",
        ) from problem
    unlike = [*result.unexpected_keys, *(key for key in result.missing_keys if "lora_" in key)]
    if unlike:
        raise CheckpointError(
            f"{folder} has adapters in other places than this run: {unlike[0]}, …",
            fix="Set lora_target_modules as they were, or use another --state-dir.",
        )


def has_saved_adapters(folder: Path) -> bool:
    """Return whether a folder holds adapters instead of a whole model."""
    return (folder / ADAPTER_CONFIG).is_file()


def base_model_of(folder: Path) -> str:
    """Return the name or path of the base model of a folder's adapters."""
    described = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    return str(described["base_model_name_or_path"])


def merge_into(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model with a folder's adapters merged into its weights.

    Raises SettingsError if peft is not installed.
    """
    try:
        from peft import PeftModel
    except ImportError as problem:
        raise SettingsError(
            "Merging adapters needs peft, which is not installed.", fix="pip install peft"
        ) from problem
    with warnings.catch_warnings():
        # peft calls transformers by a deprecated name.
        warnings.simplefilter("ignore", FutureWarning)
        merged: PreTrainedModel = PeftModel.from_pretrained(model, folder).merge_and_unload()
    return merged.requires_grad_(True)
