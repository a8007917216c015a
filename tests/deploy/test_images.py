"""The images: small in rights, pinned, without secrets."""

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
def test_building_and_running_are_separate_stages_on_pinned_images(dockerfile: Path) -> None:
    bases = [line.split()[1] for line in instructions(dockerfile) if line.startswith("FROM ")]
    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.11\.\d+-slim-\w+", base) for base in bases)


@each_image
def test_it_does_not_run_as_root(dockerfile: Path) -> None:
    users = [line for line in last_stage(dockerfile) if line.startswith("USER ")]
    assert users == ["USER 10001:10001"]


@each_image
def test_it_says_whether_it_is_healthy(dockerfile: Path) -> None:
    assert any(line.startswith("HEALTHCHECK ") for line in last_stage(dockerfile))


@each_image
def test_no_secret_is_kept_in_it(dockerfile: Path) -> None:
    for line in instructions(dockerfile):
        if line.startswith(("ENV ", "ARG ", "LABEL ")):
            assert not re.search("SECRET|PASSWORD|TOKEN|KEY", line)


@each_image
def test_everything_it_copies_from_the_repository_exists(dockerfile: Path) -> None:
    for line in instructions(dockerfile):
        if line.startswith("COPY ") and "--from=" not in line:
            *sources, _target = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources), line


def test_the_server_image_starts_the_web_process_of_the_compose_file() -> None:
    (command,) = (line for line in instructions(ROOT / "Dockerfile") if line.startswith("CMD "))
    assert re.findall(r'"([^"]+)"', command) == SERVICES["web"]["command"]


def test_no_trainer_enters_the_server_image() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "pip install --no-deps /dist/*.whl" in text
    assert not re.search(r"pip install (?!--no-deps)[^\n]*node_client", text)


def test_what_is_private_stays_out_of_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".env", ".git", "var", ".venv"} <= set(ignored)


def test_demo_data_stays_out_of_the_server_image() -> None:
    assert "swarm_web/seeding" in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.slow
def test_the_server_starts_without_demo_data(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "swarm_web", tmp_path / "swarm_web", ignore=shutil.ignore_patterns("seeding")
    )
    code = "import django; django.setup(); from django.urls import reverse; reverse('home')"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'node_client/src'}"}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
