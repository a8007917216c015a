"""Test that make records an installation as done only if all of it succeeded."""

import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

# A fake Python of the virtual environment: installs nothing and fails on the given arguments.
PYTHON = """#!/bin/sh
case "$*" in *{broken}*) exit 1 ;; esac
"""


@pytest.mark.parametrize("broken", ["'.[embedded]'", "--no-deps"])
def test_failed_installation_is_not_recorded_as_done(tmp_path: Path, broken: str) -> None:
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
