"""The shell commands that install and update the client, for the page, the docs and the tests.

Each command names only this site's package index, so that no other index can provide `swarm-node`.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

Build = Literal["cpu", "cuda"]
Tool = Literal["uv", "pipx", "venv"]

BUILDS: tuple[Build, ...] = ("cpu", "cuda")
TOOLS: tuple[Tool, ...] = ("uv", "pipx", "venv")

# Where the `venv` commands install: Debian refuses to install beside its own packages.
FOLDER = "~/.swarm-node"
_MEGABIT = 1e6 / 8
# The speed in Mbit/s for which the page states the time.
LINK_MEGABITS = 100


@dataclass(frozen=True)
class Cost:
    """The cost of an installation: bytes to `download`, bytes on `disk`, and `seconds`.

    The seconds were measured on two cores with a fast link (`python -m bench.joining`).
    """

    download: int
    disk: int
    seconds: int

    @property
    def download_gb(self) -> float:
        """Gigabytes to download."""
        return self.download / 1e9

    @property
    def disk_gb(self) -> float:
        """Gigabytes that the installation takes on disk."""
        return self.disk / 1e9

    @property
    def minutes(self) -> int:
        """Minutes that the installation takes with a link of LINK_MEGABITS, rounded up."""
        return ceil((self.download / (LINK_MEGABITS * _MEGABIT) + self.seconds) / 60)


COSTS: dict[Build, dict[Tool, Cost]] = {
    "cpu": {
        "uv": Cost(download=359_266_420, disk=1_259_880_448, seconds=13),
        "pipx": Cost(download=359_195_323, disk=1_259_945_984, seconds=15),
        "venv": Cost(download=356_673_235, disk=1_554_472_960, seconds=107),
    },
    "cuda": {
        "uv": Cost(download=3_169_933_501, disk=5_988_913_152, seconds=36),
        "pipx": Cost(download=3_169_813_620, disk=5_988_962_304, seconds=39),
        "venv": Cost(download=3_159_795_219, disk=6_292_140_032, seconds=139),
    },
}
_INDEXES: dict[Build, str] = {"cpu": "/simple/cpu/", "cuda": "/simple/"}
_INSTALL: dict[Tool, str] = {
    "uv": "uv tool install swarm-node --default-index {index}",
    "pipx": "pipx install swarm-node --index-url {index}",
    "venv": f"python3 -m venv {FOLDER} && . {FOLDER}/bin/activate\n"
    "pip install swarm-node --index-url {index}",
}
_UPDATE: dict[Tool, str] = {
    "uv": "uv tool upgrade swarm-node --default-index {index}",
    "pipx": "pipx upgrade swarm-node --index-url {index}",
    "venv": f"{FOLDER}/bin/python -m pip install --upgrade swarm-node --index-url {{index}}",
}


def write_install_lines(site_url: str) -> dict[Build, dict[Tool, str]]:
    """Return the shell commands that install the client, by build of PyTorch and by tool."""
    return _fill(_INSTALL, site_url)


def write_update_lines(site_url: str) -> dict[Build, dict[Tool, str]]:
    """Return the shell commands that update the client, by build of PyTorch and by tool.

    The client prints the same commands when it is too old (`node_client.storage.installation`).
    """
    return _fill(_UPDATE, site_url)


def _fill(commands: dict[Tool, str], site_url: str) -> dict[Build, dict[Tool, str]]:
    return {
        build: {tool: command.format(index=site_url + path) for tool, command in commands.items()}
        for build, path in _INDEXES.items()
    }
