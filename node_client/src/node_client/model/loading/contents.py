"""Checks, before a model is loaded, that its folder holds a language model.

Reads headers only, so that a damaged or far too large model is found at once.
"""

import json
from math import prod
from pathlib import Path

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from node_client.errors import ModelUnavailableError

_INDEX = "model.safetensors.index.json"
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000  # as safetensors itself allows
_OTHER_WEIGHTS = ("pytorch_model*.bin",)
# A copy of the weights for Mistral's own software; transformers does not read it.
MISTRAL_COPY = "consolidated*.safetensors"


def count_parameters(folder: Path, *, name: str) -> int | None:
    """Check a model's folder and return the number of its parameters.

    The number is in the headers of the safetensors files. It is None if the folder has weights in
    PyTorch's own format only. `name` is the name or path that the user gave, for messages.
    Raises ModelUnavailableError if the folder has no language model that can be loaded.
    """
    if not folder.is_dir():
        raise unusable(name, "it is a file, and a model is a folder")
    _check_config(folder, name=name)
    files = sorted({*folder.glob("*.safetensors")} - {*folder.glob(MISTRAL_COPY)})
    if not files:
        if any(any(folder.glob(pattern)) for pattern in _OTHER_WEIGHTS):
            return None
        raise _without_weights(folder, name=name)
    _check_shards(folder, name=name)
    return sum(_count_in(file, name=name) for file in files)


def unusable(name: str, reason: str, *, fix: str = "") -> ModelUnavailableError:
    """Return the error for an unusable model; without `fix`, the error gives general advice."""
    return ModelUnavailableError(
        f"The model {name} cannot be used: {reason}.",
        fix=fix
        or "Give --model a causal language model for transformers; `--model tiny` is the demo's.",
    )


def first_line(problem: Exception) -> str:
    """Return the first non-blank line of an error's message, else the name of its type."""
    return next(filter(str.strip, str(problem).splitlines()), type(problem).__name__)


def _check_config(folder: Path, *, name: str) -> None:
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        kind = str(config["model_type"])
    except FileNotFoundError:
        if any(folder.glob("*.gguf")):
            raise _without_weights(folder, name=name) from None
        raise unusable(name, "its folder has no config.json") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise unusable(name, f"{file} cannot be read or names no model_type") from None
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise unusable(
            name, f"a {kind} is not a language model that transformers can generate text with"
        )


def _without_weights(folder: Path, *, name: str) -> ModelUnavailableError:
    if any(folder.glob("*.gguf")):
        return unusable(
            name,
            "its weights are in GGUF, which cannot be trained",
            fix="Take the model that the GGUF was made from; it has *.safetensors files.",
        )
    return unusable(
        name,
        "its folder has no weights (*.safetensors)",
        fix="Download or copy all of its files; large ones are often left out by git.",
    )


def _check_shards(folder: Path, *, name: str) -> None:
    """Raise ModelUnavailableError if a weights file listed in the folder's index is missing.

    The same error is raised if the index cannot be read. A folder without an index passes.
    """
    index = folder / _INDEX
    if not index.is_file():
        return
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        shards = {shard: folder / shard for shard in weight_map.values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(name, f"{index} cannot be read") from None
    for shard, file in sorted(shards.items()):
        if not file.is_file():
            raise _damaged(name, f"{shard} is missing")


def _count_in(file: Path, *, name: str) -> int:
    """Return the number of parameters in a safetensors file, as its header says.

    The header is defined in safetensors' README. safetensors' own `safe_open` maps the whole file,
    so it fails for a model too large for the machine. Raises ModelUnavailableError if the file is
    damaged or shorter than the header says.
    """
    size = file.stat().st_size
    with file.open("rb") as raw:
        length = int.from_bytes(raw.read(_LENGTH_BYTES), "little")
        if not 0 < length <= min(_MAX_HEADER_BYTES, size):
            raise _damaged(name, f"{file.name} is cut short or damaged")
        try:
            header = json.loads(raw.read(length))
            tensors = [part for key, part in header.items() if key != "__metadata__"]
            end = max(part["data_offsets"][1] for part in tensors)
            expected_size = _LENGTH_BYTES + length + end
            parameters: int = sum(prod(part["shape"]) for part in tensors)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise _damaged(name, f"{file.name} is damaged") from None
    if size < expected_size:
        raise _damaged(
            name, f"{file.name} is cut short: {size:,} of {expected_size:,} bytes are there"
        )
    return parameters


def _damaged(name: str, reason: str) -> ModelUnavailableError:
    return unusable(name, reason, fix="Download or copy its files again.")
