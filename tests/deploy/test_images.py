"""Test the container images: unprivileged, pinned, without secrets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.compose import ROOT, SERVICES

DOCKERFILES = [ROOT / "Dockerfile", ROOT / "node_client" / "Dockerfile"]
each_image = pytest.mark.parametrize(
    "dockerfile", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT))
)


def instructions(dockerfile: Path) -> list[str]:
    """Return the instructions, each on one line, without comments."""
    lines = [line for line in dockerfile.read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line.strip()]


def last_stage(dockerfile: Path) -> list[str]:
    lines = instructions(dockerfile)
    start = max(index for index, line in enumerate(lines) if line.startswith("FROM "))
    return lines[start:]


@each_image
def test_build_and_run_stages_are_separate_and_use_pinned_images(dockerfile: Path) -> None:
    bases = [line.split()[1] for line in instructions(dockerfile) if line.startswith("FROM ")]
    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.11\.\d+-slim-\w+", base) for base in bases)


@each_image
def test_image_does_not_run_as_root(dockerfile: Path) -> None:
    users = [line for line in last_stage(dockerfile) if line.startswith("USER ")]
    assert users == ["USER 10001:10001"]


@each_image
def test_image_has_a_health_check(dockerfile: Path) -> None:
    assert any(line.startswith("HEALTHCHECK ") for line in last_stage(dockerfile))


@each_image
def test_image_contains_no_secret(dockerfile: Path) -> None:
    for line in instructions(dockerfile):
        if line.startswith(("ENV ", "ARG ", "LABEL ")):
            assert not re.search("SECRET|PASSWORD|TOKEN|KEY", line)


@each_image
def test_copied_paths_exist_in_the_repository(dockerfile: Path) -> None:
    for line in instructions(dockerfile):
        if line.startswith("COPY ") and "--from=" not in line:
            *sources, _target = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources), line


def test_server_image_starts_the_web_process_of_the_compose_file() -> None:
    (command,) = (line for line in instructions(ROOT / "Dockerfile") if line.startswith("CMD "))
    assert re.findall(r'"([^"]+)"', command) == SERVICES["web"]["command"]


def test_server_image_does_not_install_the_dependencies_of_the_client() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "pip install --no-deps /dist/*.whl" in text
    assert not re.search(r"pip install (?!--no-deps)[^\n]*node_client", text)


def test_private_files_are_excluded_from_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".env", ".git", "var", ".venv"} <= set(ignored)


def test_demo_data_is_excluded_from_the_server_image() -> None:
    assert "swarm_web/seeding" in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.slow
def test_server_starts_without_the_seeding_package(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "swarm_web", tmp_path / "swarm_web", ignore=shutil.ignore_patterns("seeding")
    )
    code = "import django; django.setup(); from django.urls import reverse; reverse('home')"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'node_client/src'}"}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
