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

BASE_MODELS = Path(__file__).parent / "base_models"
DEMO_BASES = ("tiny", "small", "tiny-rare", "small-rare")


def load_pretrained(
    name_or_path: str, *, device: str, dtype: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load any transformers causal LM by hub name or path, or a demo base, `tiny` or `small`.

    `auto` picks the fastest device there is, and float32, because small updates vanish in
    half-precision weights. A folder of adapters is loaded with the model that they stand on, as
    one. Raises ModelUnavailableError, or SettingsError where peft is missing for that.
    """
    folder = Path(name_or_path)
    if is_adapted(folder):
        base, tokenizer = load_pretrained(base_of(folder), device=device, dtype=dtype)
        return merge_into(base, folder), tokenizer
    source = BASE_MODELS / name_or_path if name_or_path in DEMO_BASES else name_or_path
    if Path(name_or_path).is_absolute() and not Path(name_or_path).exists():
        raise _unavailable(name_or_path, FileNotFoundError("there is no such folder"))
    precision = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    target = torch.device(_best_device() if device == "auto" else device)
    # A bar that redraws itself spoils the panel and every log.
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers types it not
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(source, dtype=precision)
        torch.nn.Module.to(model, target)
    # transformers, safetensors and torch raise all of these for what the user should mend.
    except (OSError, ValueError, ImportError, RuntimeError, KeyError) as problem:
        raise _unavailable(name_or_path, problem) from problem
    if tokenizer.eos_token_id is None:
        raise ModelUnavailableError(
            f"The tokenizer of {name_or_path} has no end-of-sequence token.",
            fix="Choose a model whose tokenizer names one, such as an instruction-tuned model.",
        )
    return model, tokenizer


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


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _unavailable(name: str, problem: Exception) -> ModelUnavailableError:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    reason = lines[0] if lines else type(problem).__name__
    return ModelUnavailableError(
        f"The model {name} could not be loaded: {reason}",
        fix="Check the name on huggingface.co or the path, the network, and free memory and disk; "
        "`--model tiny` works without a download.",
    )
