"""Test that pip, pipx and uv can install from the site with the lines of the Join page."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from node_client.storage.installation import Installer, find_installer
from swarm_web.dashboard.reports.installing import (
    Build,
    Tool,
    write_install_lines,
    write_update_lines,
)
from tests.processes import PROJECT
from tests.web import serving
from tests.wheels import PublicIndex, make_wheel, public_index

pytestmark = pytest.mark.slow

TESTED_TQDM = re.findall(r"\ntqdm==(.*)", (PROJECT / "constraints.txt").read_text())[0]
# The client's name for its installer.
INSTALLERS: dict[Tool, Installer] = {"uv": "uv tool", "pipx": "pipx", "venv": "pip"}
NEEDS = ("torch>=2", "reasoning-gym")


@dataclass(frozen=True)
class World:
    """A site with wheels of the client, a public index, and PyTorch's index of CPU builds."""

    site: str
    wheels: Path
    public: PublicIndex
    pytorch: PublicIndex


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[World]:
    """A public index with a foreign client that is newer than the site's, and the other indexes."""
    folder = tmp_path_factory.mktemp("world")
    for name in ("site", "public", "pytorch"):
        (folder / name).mkdir()
    make_wheel(folder / "site", "swarm-node", "0.2.0", requires=NEEDS, requires_python=">=3.11")
    make_wheel(folder / "site", "swarm-node", "9.0", requires_python=">=99")
    make_wheel(folder / "site", "pycosat", "0.6.6+sympy.1")
    at = folder / "public"
    public = {
        "swarm-node": [make_wheel(at, "swarm-node", "99.0")],
        "torch": [
            make_wheel(at, "torch", version, requires=["nvidia-cudnn"])
            for version in ("2.12.0", "2.13.0")
        ],
        "nvidia-cudnn": [make_wheel(at, "nvidia-cudnn", "9.0")],
        "reasoning-gym": [make_wheel(at, "reasoning-gym", "0.1.25", requires=["pycosat==0.6.6"])],
        "pycosat": [make_wheel(at, "pycosat", "0.6.6")],
        "tqdm": [make_wheel(at, "tqdm", version) for version in (TESTED_TQDM, "999.0")],
        "altered": [make_wheel(at, "altered", "1.0")],
    }
    cpu = {"torch": [make_wheel(folder / "pytorch", "torch", "2.13.0+cpu")]}
    with ExitStack() as stack:
        index, pytorch = (stack.enter_context(public_index(w)) for w in (public, cpu))
        index.lying.add("altered-1.0-py3-none-any.whl")
        site = stack.enter_context(
            serving(
                DIST_DIR=str(folder / "site"),
                PACKAGE_FALLBACK_URL=index.url,
                PACKAGE_TORCH_CPU_URL=pytorch.url,
            )
        )
        yield World(site, folder / "site", index, pytorch)


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    """The environment of a new user with Python, uv and pipx, and without a compiler."""
    programs = tmp_path / "bin"
    programs.mkdir()
    beside = Path(sys.executable).parent
    for name in ("uv", "pipx"):
        (programs / name).symlink_to(beside / name)
    (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    return {
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{tmp_path}/.local/bin",
        "CC": "/bin/false",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        # With its other backend, pip, pipx would first install the newest pip from the index.
        "PIPX_DEFAULT_BACKEND": "uv",
    }


def run(line: str, environment: dict[str, str]) -> str:
    """Run shell commands and return their output."""
    shell = ["/bin/sh", "-euc", line]
    done = subprocess.run(shell, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("tool", "build"), [("uv", "cpu"), ("uv", "cuda"), ("pipx", "cpu"), ("venv", "cpu")]
)
def test_lines_install_and_update_the_client_and_preserve_the_build_of_torch(
    world: World, newcomer: dict[str, str], tool: Tool, build: Build
) -> None:
    line = write_install_lines(world.site)[build][tool]
    *_, version, command = run(f"{line}\nswarm-node\ncommand -v swarm-node", newcomer).splitlines()
    assert version == "swarm-node 0.2.0"
    prefix = Path(command).resolve().parent.parent
    assert find_installer(prefix, has_pip=True) == INSTALLERS[tool]
    rest = {"pycosat-0.6.6+sympy.1", "reasoning_gym-0.1.25"}
    rest |= {"torch-2.13.0+cpu"} if build == "cpu" else {"torch-2.13.0", "nvidia_cudnn-9.0"}
    assert find_installed(newcomer) == rest | {"swarm_node-0.2.0"}
    newer = make_wheel(world.wheels, "swarm-node", "0.3.0", requires=NEEDS)
    try:
        run(write_update_lines(world.site)[build][tool], newcomer)
    finally:
        newer.unlink()
    assert find_installed(newcomer) == rest | {"swarm_node-0.3.0"}


def find_installed(newcomer: dict[str, str]) -> set[str]:
    """Return the installed projects with their versions."""
    return {
        path.name.removesuffix(".dist-info")
        for path in Path(newcomer["HOME"]).rglob("*.dist-info")
        if "site-packages" in path.parts and not path.name.startswith(("pip-", "setuptools-"))
    }


def install(tool: str, project: str, *also: str, index: str, target: Path) -> str:
    """Install a project with pip or uv into a directory; return the error output, if it failed."""
    program = [sys.executable, "-m", "pip"] if tool == "pip" else ["uv", "pip"]
    # uv would use cached files of earlier tests.
    options = ["--no-cache-dir", "--target", str(target), "--index-url", index]
    environment = os.environ | {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    environment |= {"UV_NO_CONFIG": "1", "PATH": f"{Path(sys.executable).parent}:/usr/bin"}
    done = subprocess.run(
        [*program, "install", *options, *also, project],
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_file_of_another_index_is_checked_against_its_hash(
    world: World, tmp_path: Path, tool: str
) -> None:
    why = install(tool, "altered", index=f"{world.site}/simple/", target=tmp_path / "target")
    assert "hash" in why.lower()


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_cuda_build_is_not_installed_from_the_cpu_index(
    world: World, tmp_path: Path, tool: str
) -> None:
    index, target = f"{world.site}/simple/cpu/", tmp_path / "target"
    assert "torch" in install(tool, "torch==2.12.0", index=index, target=target)
    assert not list(target.glob("*.dist-info"))


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_site_without_wheels_does_not_install_a_foreign_client(
    world: World, tmp_path: Path, tool: str
) -> None:
    target, public = tmp_path / "target", world.public.url
    with serving(DIST_DIR=str(tmp_path), PACKAGE_FALLBACK_URL=public) as site:
        assert install(tool, "swarm-node", index=f"{site}/simple/", target=target)
    assert not list(target.glob("*.dist-info"))
    assert not install(tool, "swarm-node", index=public, target=target)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_constraints_of_the_site_select_the_tested_version(
    world: World, tmp_path: Path, tool: str
) -> None:
    index = f"{world.site}/simple/"
    chosen = ("--constraint", f"{index}constraints.txt")
    assert not install(tool, "tqdm", index=index, target=tmp_path / "newest")
    assert not install(tool, "tqdm", *chosen, index=index, target=tmp_path / "tested")
    assert [path.name for path in tmp_path.glob("newest/*.dist-info")] == ["tqdm-999.0.dist-info"]
    [found] = tmp_path.glob("tested/*.dist-info")
    assert found.name == f"tqdm-{TESTED_TQDM}.dist-info"


def test_public_index_is_not_requested_for_projects_of_the_site(
    world: World, tmp_path: Path
) -> None:
    world.public.asked.clear()
    assert not install("pip", "swarm-node", index=f"{world.site}/simple/", target=tmp_path / "at")
    pages = {path for path in world.public.asked if path.startswith("/simple/")}
    assert pages == {"/simple/torch/", "/simple/reasoning-gym/", "/simple/nvidia-cudnn/"}
