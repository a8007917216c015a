"""Finds how this client was installed, and the command that upgrades it from a coordinator.

The command uses the coordinator's package index only: a package called `swarm-node` on another
index could be any code. The index is `/simple/cpu/` if PyTorch is the CPU build, else `/simple/`.
"""

import shlex
import sys
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from node_client.site import Site

Installer = Literal["uv tool", "pipx", "pip", "uv pip"]

# A file in an environment, and the tool that leaves it there.
_RECEIPTS: dict[str, Installer] = {"uv-receipt.toml": "uv tool", "pipx_metadata.json": "pipx"}


@dataclass(frozen=True)
class ClientInstallation:
    """The client's installer, the path of its Python, and whether PyTorch is the CPU build."""

    installer: Installer
    python: str
    is_cpu_build: bool


def find_installation() -> ClientInstallation:
    """Return how this client was installed, from its environment."""
    installer = find_installer(Path(sys.prefix), has_pip=find_spec("pip") is not None)
    return ClientInstallation(installer, sys.executable, "+cpu" in _read_torch_version())


def find_installer(prefix: Path, *, has_pip: bool) -> Installer:
    """Return the tool that installed the client into the environment at `prefix`.

    It is `uv tool` or `pipx` if one of these created the environment; otherwise `pip` if the
    environment has pip, and `uv pip` if not.
    """
    for receipt, tool in _RECEIPTS.items():
        if (prefix / receipt).exists():
            return tool
    return "pip" if has_pip else "uv pip"


def upgrade_command(site: Site, installation: ClientInstallation) -> str:
    """Return the shell command that upgrades the client from a coordinator's package index."""
    index = f"{site.base}/simple/cpu/" if installation.is_cpu_build else f"{site.base}/simple/"
    python = shlex.quote(installation.python)
    return {
        "uv tool": f"uv tool upgrade swarm-node --default-index {index}",
        "pipx": f"pipx upgrade swarm-node --index-url {index}",
        "pip": f"{python} -m pip install --upgrade swarm-node --index-url {index}",
        "uv pip": f"uv pip install --python {python} --upgrade swarm-node --default-index {index}",
    }[installation.installer]


def _read_torch_version() -> str:
    """Return the version of the installed PyTorch without importing it; empty if there is none."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""
