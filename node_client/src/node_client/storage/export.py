"""Chooses a checkpoint, and exports its model as an ordinary transformers folder."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from node_client.errors import CheckpointError, SettingsError
from node_client.storage.checkpoint import newest_first
from node_client.storage.durable import flush_tree
from node_client.storage.manifest import (
    DamagedError,
    Manifest,
    OutdatedError,
    check_files,
    read_manifest,
)

CARD = "README.md"
# Written by peft beside adapters: a folder with this file is not a complete model.
ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class ChosenCheckpoint:
    """A checkpoint to export, whose files match its manifest."""

    path: Path
    manifest: Manifest

    @property
    def model(self) -> Path:
        """The folder with the model in the format of transformers, or with only its adapters."""
        return self.path / "policy"


def choose_checkpoint(folder: Path, name: str | None = None) -> ChosenCheckpoint:
    """Return the newest intact checkpoint in a folder, or the one that `name` selects.

    `name` is the number of a step or the path of a checkpoint. A checkpoint in the format of
    another client version does not count as intact. Raises CheckpointError if the selected
    checkpoint does not exist or is not intact. Without `name`, raises it if the folder has no
    intact checkpoint.
    """
    if name is not None:
        return _check(_find(folder, name))
    for path in newest_first(folder):
        try:
            return _check(path)
        except CheckpointError:
            continue
    raise CheckpointError(
        f"There is no intact checkpoint in {folder}.",
        fix="Train first, or name the run's --state-dir, its coordinator's address, or a "
        "--checkpoint by its path.",
    )


def _find(folder: Path, name: str) -> Path:
    if not name.isdecimal():
        return Path(name)
    checkpoints = newest_first(folder)
    found = [path for path in checkpoints if path.name == f"step-{int(name):08d}"]
    if not found:
        steps = ", ".join(str(int(path.name.split("-")[1].split(".")[0])) for path in checkpoints)
        raise CheckpointError(
            f"There is no checkpoint of step {name} in {folder}.",
            fix=f"Available steps: {steps or 'none'}.",
        )
    return found[0]


def _check(path: Path) -> ChosenCheckpoint:
    try:
        manifest = read_manifest(path)
        check_files(path, manifest)
    except OutdatedError:
        raise CheckpointError(
            f"{path} was written by another version of swarm-node.",
            fix=f"Its model can be used by its path: {path / 'policy'}.",
        ) from None
    except (DamagedError, OSError) as problem:
        raise CheckpointError(
            f"{path} is not an intact checkpoint: {problem}",
            fix="Choose another with --checkpoint STEP, or leave it out for the newest.",
        ) from None
    return ChosenCheckpoint(path=path, manifest=manifest)


def export_model(
    chosen: ChosenCheckpoint,
    out: Path,
    *,
    card: str,
    write: Callable[[Path, Path], object] = shutil.copytree,
) -> None:
    """Write the checkpoint's model and `card`, a README.md, as the new folder `out`.

    `write(source, target)` creates the folder `target` from the checkpoint's model in `source`. The
    default copies; if the model has adapters, `write` must merge them into their base. A failure
    leaves no folder `out`. Raises SettingsError when `out` exists or cannot be written, and the
    NodeErrors that `write` raises.
    """
    if out.exists():
        raise SettingsError(
            f"{out} exists already, and nothing is overwritten.",
            fix="Choose another folder with --out, or remove that one.",
        )
    draft = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        write(chosen.model, draft)
        (draft / CARD).write_text(card, encoding="utf-8")
        flush_tree(draft)
        draft.rename(out)
    except OSError as problem:
        raise SettingsError(
            f"{out} cannot be written: {problem.strerror or problem}.",
            fix="Choose another folder with --out, or free some space.",
        ) from problem
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # what a failure leaves
