"""Do a slow step again only when what it depends on has changed."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def fingerprint(folders: Iterable[Path], *extra: str) -> str:
    """Digest the names, sizes and times of all files below `folders`, and the `extra` texts."""
    digest = hashlib.sha256(repr(extra).encode())
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                facts = path.stat()
                digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def is_current(stamp: Path, print_of_now: str) -> bool:
    """Say whether the step that wrote `stamp` saw the same files."""
    return stamp.exists() and stamp.read_text() == print_of_now
