"""The wheels in DIST_DIR: what the site's own package index offers."""

import re
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path

_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


@dataclass(frozen=True)
class Wheel:
    """A file that the index offers, and its METADATA (PEP 658), empty if it cannot be read."""

    path: Path
    sha256: str
    metadata: bytes

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def metadata_sha256(self) -> str:
        """The hash of the METADATA, empty without one."""
        return sha256(self.metadata).hexdigest() if self.metadata else ""

    @property
    def requires_python(self) -> str:
        """The versions of Python that the wheel is for, empty if any will do."""
        return HeaderParser().parsestr(self.metadata.decode()).get("Requires-Python", "")


def normalise(name: str) -> str:
    """Return a project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_wheels(folder: Path) -> dict[str, list[Path]]:
    """Return the wheels in a folder by normalised project name."""
    wheels: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.whl")):
        wheels.setdefault(normalise(path.name.split("-", 1)[0]), []).append(path)
    return wheels


def read_wheel(path: Path) -> Wheel:
    """Return what the index says about a wheel."""
    return _read_wheel(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read_wheel(path: Path, _modified_ns: int) -> Wheel:
    """Read a wheel once for each state of the file."""
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return Wheel(path, digest, _read_metadata(path))


def _read_metadata(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _METADATA.fullmatch(name)]
            return archive.read(names[0]) if names else b""
    except zipfile.BadZipFile:  # pip says so, too, with the file's name
        return b""
