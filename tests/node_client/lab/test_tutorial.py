"""The tutorial of docs/lab.md does what it says, run as it is printed there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from node_client.lab.report.making import read_report

REPOSITORY = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


def in_the_tutorial(language: str) -> str:
    """Return the one block of this language in the section "Test an idea"."""
    text = (REPOSITORY / "docs" / "lab.md").read_text(encoding="utf-8")
    section = text.split("\n## Test an idea\n")[1].split("\n## ")[0]
    (block,) = re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)
    return block


def in_a_terminal(*arguments: str, folder: Path) -> str:
    ran = subprocess.run(
        (sys.executable, "-m", "node_client", *arguments),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((".", *sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_reader_tests_an_idea_of_twenty_lines(tmp_path: Path) -> None:
    strategy = in_the_tutorial("python")
    assert len(strategy.splitlines()) <= 20
    (tmp_path / "brief.py").write_text(strategy, encoding="utf-8")
    (tmp_path / "brief.toml").write_text(in_the_tutorial("toml"), encoding="utf-8")
    in_a_terminal("lab", "run", "brief.toml", folder=tmp_path)
    in_a_terminal("lab", "report", "var/lab/brief", folder=tmp_path)
    folder = tmp_path / "var" / "lab" / "brief"
    assert (folder / "report.html").exists()
    report = read_report(folder / "report.json")
    assert [arm.name for arm in report.arms] == ["uniform", "brief"]
    uniform, brief = (
        (folder / "runs" / f"{arm}-1.jsonl").read_text() for arm in ("uniform", "brief")
    )
    assert uniform.splitlines()[2:] != brief.splitlines()[2:]
