"""A checkpoint's manifest: its model and step, and the SHA-256 of every file in it."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

FORMAT = 2
NAME = "manifest.json"

MeritKind = Literal["held_out", "judge_score"]


class DamagedError(Exception):
    """A checkpoint is incomplete or was changed after it was written."""


class OutdatedError(Exception):
    """A checkpoint has the format of another version of the client."""


class Merit(msgspec.Struct, frozen=True):
    """The score of a checkpoint's model in a season, on the held-out set or by the judge.

    Only merits of the same kind and season can be compared; a higher `value` is better.
    """

    kind: MeritKind
    season: str
    value: float

    def is_like(self, other: "Merit") -> bool:
        """Return whether `other` has the same kind and season, so that both can be compared."""
        return (self.kind, self.season) == (other.kind, other.season)


class Manifest(msgspec.Struct, frozen=True):
    """The content of `manifest.json`.

    `files` has the SHA-256 of each file by its path in the checkpoint, with `/` on every system.
    `parameters` is the model's number of parameters, and `tokenizer` its tokenizer's fingerprint: a
    checkpoint fits only a model with an equal number and fingerprint.
    """

    step: int
    model: str
    parameters: int
    tokenizer: str
    files: dict[str, str]
    merit: Merit | None = None
    format: int = 1


def digest_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder and below it, in hex, by relative path."""
    return {
        path.relative_to(folder).as_posix(): _digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a checkpoint. Raises OSError."""
    (folder / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a checkpoint, without checking the files that it lists.

    Raises DamagedError if the manifest is missing or cannot be read. Raises OutdatedError if its
    `format` differs from FORMAT, the format of this version of the client.
    """
    try:
        manifest = msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as problem:
        raise DamagedError(f"its {NAME} cannot be read ({problem})") from None
    if manifest.format != FORMAT:
        raise OutdatedError
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise DamagedError unless each file in the manifest exists and has the SHA-256 listed.

    Raises OSError if a file cannot be read.
    """
    for name, digest in manifest.files.items():
        if not (folder / name).is_file():
            raise DamagedError(f"{name} is missing")
        if _digest(folder / name) != digest:
            raise DamagedError(f"{name} is not what was written")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
