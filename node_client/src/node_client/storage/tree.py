"""Writes and reads a trainer's state as a tree of plain values and tensors, without pickle.

Plain values are None, bool, int, float and str; lists, tuples and dicts nest them. Tensors go into
a safetensors file under their path in the tree, which is made unique, and everything else into
JSON, where `$tensor`, `$tuple` and `$items` mark types that JSON lacks. A tree is read back equal
and with the same types.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

# Floats are read back with the same bits, infinities too; NaN is read back as NaN.
_LEAVES = (type(None), bool, int, float, str)


def write_tree(folder: Path, name: str, tree: Mapping[str, Any]) -> None:
    """Write nested values and tensors as `name.json` and `name.safetensors` into a folder.

    A tree may have tensors, None, bool, int, float and str in dicts, lists and tuples. Raises
    TypeError for any other value; the message has the value's path in the tree. Raises OSError or
    safetensors.SafetensorError if a file cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    skeleton = _split(dict(tree), path="", tensors=tensors)
    save_file(_copy_shared(tensors), folder / f"{name}.safetensors")
    (folder / f"{name}.json").write_text(json.dumps(skeleton), encoding="utf-8")


def read_tree(folder: Path, name: str) -> dict[str, Any]:
    """Return the tree that `write_tree` wrote, with its tensors on the CPU.

    Raises OSError, ValueError, KeyError and safetensors.SafetensorError for a damaged file.
    """
    skeleton = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    tree: dict[str, Any] = _join(skeleton, tensors=load_file(folder / f"{name}.safetensors"))
    return tree


def _split(value: Any, *, path: str, tensors: dict[str, Tensor]) -> object:
    """Convert a value for JSON and return it; add its tensors to `tensors`, by their path."""

    def inside(part: object, name: object) -> object:
        return _split(part, path=f"{path}/{name}" if path else str(name), tensors=tensors)

    if isinstance(value, Tensor):
        while path in tensors:  # the keys 1 and "1" form the same path, for example
            path += "'"
        tensors[path] = value.detach()
        return {"$tensor": path}
    if type(value) in (list, tuple):
        parts = [inside(part, place) for place, part in enumerate(value)]
        return parts if type(value) is list else {"$tuple": parts}
    if type(value) is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: inside(part, key) for key, part in value.items()}
        return {"$items": [[inside(key, key), inside(part, key)] for key, part in value.items()]}
    if type(value) in _LEAVES:
        return value
    raise TypeError(f"{path}: a {type(value).__name__} is neither a plain value nor a tensor")


def _join(value: Any, *, tensors: Mapping[str, Tensor]) -> Any:
    match value:
        case {"$tensor": path}:
            return tensors[path]
        case {"$tuple": parts}:
            return tuple(_join(part, tensors=tensors) for part in parts)
        case {"$items": pairs}:
            return {
                _join(key, tensors=tensors): _join(part, tensors=tensors) for key, part in pairs
            }
        case list():
            return [_join(part, tensors=tensors) for part in value]
        case dict():
            return {key: _join(part, tensors=tensors) for key, part in value.items()}
    return value


def _copy_shared(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous tensors that share no memory, as safetensors requires."""
    seen: set[int] = set()
    own: dict[str, Tensor] = {}
    for path, tensor in tensors.items():
        storage = tensor.untyped_storage().data_ptr()
        is_unshared = tensor.is_contiguous() and storage not in seen
        own[path] = tensor if is_unshared else tensor.clone(memory_format=torch.contiguous_format)
        seen.add(storage)
    return own
