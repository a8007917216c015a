"""The tutorial of docs/lab.md works as it is printed there."""

import os
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.lab.report.making import read_report

REPOSITORY = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


def tutorial_block(language: str) -> str:
    """Return the one block of this language in the section "Test an idea"."""
    text = (REPOSITORY / "docs" / "lab.md").read_text(encoding="utf-8")
    section = text.split("\n## Test an idea\n")[1].split("\n## ")[0]
    (block,) = re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)
    return str(block)


def lab(*arguments: str) -> None:
    result = CliRunner().invoke(app, ["lab", *arguments])
    assert result.exit_code == 0, result.output


def test_idea_of_twenty_lines_can_be_tested_as_in_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Both do what `PYTHONPATH=.` does: for this process, and for those that make the runs.
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    strategy = tutorial_block("python")
    assert len(strategy.splitlines()) <= 20
    (tmp_path / "brief.py").write_text(strategy, encoding="utf-8")
    (tmp_path / "brief.toml").write_text(tutorial_block("toml"), encoding="utf-8")
    lab("run", "brief.toml")
    lab("report", "var/lab/brief")
    folder = tmp_path / "var" / "lab" / "brief"
    assert (folder / "report.html").exists()
    report = read_report(folder / "report.json")
    assert [arm.name for arm in report.arms] == ["uniform", "brief"]
    uniform, brief = (
        (folder / "runs" / f"{arm}-1.jsonl").read_text() for arm in ("uniform", "brief")
    )
    assert uniform.splitlines()[2:] != brief.splitlines()[2:]
