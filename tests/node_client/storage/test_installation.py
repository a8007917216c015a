"""The upgrade command matches how the client was installed."""

from importlib import metadata
from pathlib import Path

import pytest

from node_client.site import parse_site
from node_client.storage.installation import (
    ClientInstallation,
    Installer,
    find_installation,
    find_installer,
    upgrade_command,
)
from swarm_web.dashboard.reports.installing import FOLDER, Build, Tool, write_update_lines

SITE = "https://swarm.example.org"


@pytest.mark.parametrize(
    ("receipt", "has_pip", "installer"),
    [
        ("uv-receipt.toml", False, "uv tool"),
        ("pipx_metadata.json", False, "pipx"),
        ("pyvenv.cfg", True, "pip"),
        ("pyvenv.cfg", False, "uv pip"),
    ],
)
def test_installer_is_recognised_by_the_files_of_the_environment(
    tmp_path: Path, receipt: str, has_pip: bool, installer: Installer
) -> None:
    (tmp_path / receipt).touch()
    assert find_installer(tmp_path, has_pip=has_pip) == installer


@pytest.mark.parametrize(("version", "is_cpu_build"), [("2.13.0+cpu", True), ("2.13.0", False)])
def test_cpu_build_is_recognised_by_the_version_of_pytorch(
    monkeypatch: pytest.MonkeyPatch, version: str, is_cpu_build: bool
) -> None:
    monkeypatch.setattr(metadata, "version", lambda _project: version)
    assert find_installation().is_cpu_build == is_cpu_build


@pytest.mark.parametrize(
    ("installer", "tool"), [("uv tool", "uv"), ("pipx", "pipx"), ("pip", "venv")]
)
@pytest.mark.parametrize(("build", "is_cpu_build"), [("cpu", True), ("cuda", False)])
def test_upgrade_command_is_the_one_of_the_join_page(
    installer: Installer, tool: Tool, build: Build, is_cpu_build: bool
) -> None:
    installation = ClientInstallation(installer, "/home/me/.swarm-node/bin/python", is_cpu_build)
    line = upgrade_command(parse_site(f"{SITE}/join/"), installation)
    assert line.replace("/home/me/.swarm-node", FOLDER) == write_update_lines(SITE)[build][tool]


def test_python_path_with_a_space_is_quoted() -> None:
    installation = ClientInstallation("uv pip", "/my things/bin/python", is_cpu_build=False)
    assert "--python '/my things/bin/python' " in upgrade_command(parse_site(SITE), installation)
