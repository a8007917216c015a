"""Models by name or path, and the demo bases that ship with the client."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from node_client.errors import ModelUnavailableError
from node_client.model.adapters import base_of, is_adapted, merge_into
from node_client.model.contents import count_parameters
from node_client.model.devices import choose_device
from node_client.model.hub import fetch_model
from node_client.model.preflight import check_memory
from node_client.model.progress import Tell, keep_quiet, loading_told

BASE_MODELS = Path(__file__).parent / "base_models"
DEMO_BASES = ("tiny", "small", "tiny-rare", "small-rare")


def load_pretrained(
    name_or_path: str, *, device: str, dtype: str, tell: Tell = keep_quiet
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load any transformers causal LM by hub name or path, or a demo base, `tiny` or `small`.

    `auto` picks the fastest device there is, and float32, because small updates vanish in
    half-precision weights. A folder of adapters is loaded with the model that they stand on, as
    one. `tell` hears of downloads and loading. Raises ModelUnavailableError, or SettingsError
    where the device is not there, or peft is missing for adapters.
    """
    target, source = choose_device(device), _find_source(name_or_path, tell=tell)
    if is_adapted(source):
        base, tokenizer = load_pretrained(base_of(source), device=device, dtype=dtype, tell=tell)
        return merge_into(base, source), tokenizer
    precision = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    parameters = count_parameters(source, name=name_or_path)
    if parameters is not None:
        check_memory(name_or_path, parameters * precision.itemsize, device=target)
    # A bar that redraws itself spoils the panel and every log.
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers types it not
    try:
        with loading_told(tell):
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True)
            model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
                source, dtype=precision, local_files_only=True
            )
        torch.nn.Module.to(model, target)
    # transformers, safetensors and torch raise all of these for what the user should mend.
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError) as problem:
        raise _unavailable(name_or_path, problem) from problem
    if tokenizer.eos_token_id is None:
        raise ModelUnavailableError(
            f"The tokenizer of {name_or_path} has no end-of-sequence token.",
            fix="Choose a model whose tokenizer names one, such as an instruction-tuned model.",
        )
    return model, tokenizer


def _find_source(name_or_path: str, *, tell: Tell) -> Path:
    """Return the folder of a model, downloaded if need be. Raises ModelUnavailableError."""
    if name_or_path in DEMO_BASES:
        return BASE_MODELS / name_or_path
    folder = Path(name_or_path)
    return folder if folder.exists() else fetch_model(name_or_path, tell=tell)


def merge_adapters(folder: Path, out: Path) -> None:
    """Write the model of a folder with adapters as an ordinary one, the adapters in its weights.

    Raises what `load_pretrained` does, and OSError when it cannot be written.
    """
    model, tokenizer = load_pretrained(str(folder), device="cpu", dtype="float32")
    try:
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    except SafetensorError as problem:  # what a full disk is to safetensors
        raise OSError(str(problem)) from problem


def _unavailable(name: str, problem: Exception) -> ModelUnavailableError:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    reason = lines[0] if lines else type(problem).__name__
    return ModelUnavailableError(
        f"The model {name} could not be loaded: {reason}",
        fix="Check the name on huggingface.co or the path, the network, and free memory and disk; "
        "`--model tiny` works without a download.",
    )
