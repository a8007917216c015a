"""Which checkpoint is meant: the newest sound one, that of a step, or one in another folder."""

from dataclasses import dataclass
from pathlib import Path

from node_client.errors import CheckpointError
from node_client.storage.checkpoint import newest_first
from node_client.storage.manifest import (
    DamagedError,
    Manifest,
    OutdatedError,
    check_files,
    read_manifest,
)


@dataclass(frozen=True)
class Chosen:
    """A sound checkpoint: its files are what was written."""

    path: Path
    manifest: Manifest

    @property
    def model(self) -> Path:
        """The folder of the model, which transformers can load."""
        return self.path / "policy"


def choose_checkpoint(folder: Path, wish: str | None = None) -> Chosen:
    """Return the newest sound checkpoint in a folder, or the one that is wished for.

    A wish is a step's number or a checkpoint's path. Raises CheckpointError when there is none.
    """
    if wish is not None:
        return _check(_find(folder, wish))
    for path in newest_first(folder):
        try:
            return _check(path)
        except CheckpointError:
            continue
    raise CheckpointError(
        f"There is no sound checkpoint in {folder}.",
        fix="Train first, or name the run's --state-dir, its coordinator's address, or a "
        "--checkpoint by its path.",
    )


def _find(folder: Path, wish: str) -> Path:
    if not wish.isdecimal():
        return Path(wish)
    there = newest_first(folder)
    found = [path for path in there if path.name == f"step-{int(wish):08d}"]
    if not found:
        steps = ", ".join(str(int(path.name.split("-")[1].split(".")[0])) for path in there)
        raise CheckpointError(
            f"There is no checkpoint of step {wish} in {folder}.",
            fix=f"Choose one of these steps: {steps or 'none is there'}.",
        )
    return found[0]


def _check(path: Path) -> Chosen:
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
            f"{path} is no sound checkpoint: {problem}",
            fix="Choose another with --checkpoint STEP, or leave it out for the newest.",
        ) from None
    return Chosen(path=path, manifest=manifest)
