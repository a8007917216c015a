"""Checkpoints: written whole or not at all, checked before they are believed.

A state folder holds `step-00000012/` with `policy/` (which `--model` can read), `trainer.pt` and a
`manifest.json` that lists every file's SHA-256. The newest two are kept, so that a damaged one has
another before it.
"""

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from node_client.errors import CheckpointError

KEPT = 2
MANIFEST = "manifest.json"


class Weights(Protocol):
    """A model whose weights can be written and read."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    @property
    def tokenizer_fingerprint(self) -> str: ...

    def save(self, folder: Path) -> None:
        """Write the model as a folder."""

    def load_weights(self, folder: Path) -> None:
        """Read what `save` wrote."""


class Resumable(Protocol):
    """A trainer: its model's weights, and all else that a resumed run needs."""

    @property
    def policy(self) -> Weights: ...
    @property
    def steps_done(self) -> int: ...

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the weights."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on, and what was wrong with newer checkpoints that could not be used."""

    step: int
    problems: list[str]


class _DamagedError(Exception):
    """A checkpoint is not what was written."""


def save(folder: Path, trainer: Resumable) -> Path:
    """Write the trainer's state as the newest checkpoint in the folder and return its path.

    The files are written under another name, flushed to disk and then renamed, so a crash leaves
    either the whole checkpoint or none. Raises OSError, such as for a full disk.
    """
    target = folder / f"step-{trainer.steps_done:08d}"
    draft = folder / f".{target.name}.partial"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    trainer.policy.save(draft / "policy")
    torch.save(trainer.state_dict(), draft / "trainer.pt")
    manifest = {
        "step": trainer.steps_done,
        "model": trainer.policy.name,
        "parameters": trainer.policy.parameters,
        "tokenizer": trainer.policy.tokenizer_fingerprint,
        "files": {str(path.relative_to(draft)): _digest(path) for path in _files(draft)},
    }
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1))
    for path in (*_files(draft), draft):
        _flush(path)
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    _flush(folder)
    for old in _newest_first(folder)[KEPT:]:
        shutil.rmtree(old)
    return target


def resume(folder: Path, trainer: Resumable) -> Resumed | None:
    """Load the newest sound checkpoint into the trainer, or return None where there is none.

    Damaged ones are passed over and named in `problems`. Raises CheckpointError when the newest
    sound one belongs to another model.
    """
    problems: list[str] = []
    for path in _newest_first(folder):
        try:
            manifest = _read_manifest(path)
            _check_model(path, manifest, trainer)
            state = torch.load(path / "trainer.pt", map_location="cpu", weights_only=True)
        except (_DamagedError, OSError, RuntimeError, pickle.UnpicklingError) as problem:
            problems.append(f"Checkpoint {path.name} is damaged and was passed over: {problem}")
            continue
        trainer.policy.load_weights(path / "policy")
        trainer.load_state(state)
        return Resumed(step=trainer.steps_done, problems=problems)
    return Resumed(step=0, problems=problems) if problems else None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint whose files are all there and unchanged."""
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text())
        expected: dict[str, str] = manifest["files"]
    except (ValueError, KeyError, TypeError, OSError) as problem:
        raise _DamagedError(f"its manifest cannot be read ({problem})") from None
    for name, digest in expected.items():
        if not (path / name).is_file():
            raise _DamagedError(f"{name} is missing")
        if _digest(path / name) != digest:
            raise _DamagedError(f"{name} is not what was written")
    return manifest


def _check_model(path: Path, manifest: dict[str, Any], trainer: Resumable) -> None:
    policy = trainer.policy
    here = (policy.parameters, policy.tokenizer_fingerprint)
    if (manifest["parameters"], manifest["tokenizer"]) != here:
        raise CheckpointError(
            f"{path} was trained from {manifest['model']}, but this run uses {policy.name}.",
            fix=f"Use --model {manifest['model']} again, or another --state-dir.",
        )
