"""What make notes as installed is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

# Stands in for the virtual environment's Python: installs nothing, and fails where it is told to.
PYTHON = """#!/bin/sh
case "$*" in *{broken}*) exit 1 ;; esac
"""


@pytest.mark.parametrize("broken", ["'.[embedded]'", "--no-deps"])
def test_an_installation_that_fails_is_not_noted_as_done(tmp_path: Path, broken: str) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(settings.BASE_DIR / name, tmp_path)
    (tmp_path / "node_client").mkdir()
    shutil.copy(settings.BASE_DIR / "node_client/pyproject.toml", tmp_path / "node_client")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON.format(broken=broken))
    python.chmod(0o755)
    made = subprocess.run(
        ["make", ".venv/installed-site"], cwd=tmp_path, capture_output=True, check=False
    )
    assert made.returncode != 0
    assert not (tmp_path / ".venv/installed-site").exists()
