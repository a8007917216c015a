"""`service run` becomes the node, whatever the result of an update."""

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands.service import upgrading
from node_client.storage.state import StateDir
from node_client.storage.upgrades import UpgradeRequest, write_upgrade

URL = "https://swarm.example.org"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Collect the commands that the process would become."""
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append(words))
    return became


def run(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        app, ["service", "run", URL, "--state-dir", str(folder), *arguments]
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_process_becomes_the_node_with_the_same_settings(
    tmp_path: Path, started: list[list[str]]
) -> None:
    run(tmp_path, "--wait-when-refused")
    joined = [sys.executable, "-m", "node_client", "join", URL, "--plain"]
    assert started == [[*joined, "--state-dir", str(tmp_path), "--wait-when-refused"]]


def test_nothing_is_installed_without_the_owners_consent(
    tmp_path: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_upgrade(StateDir(tmp_path), UpgradeRequest("9.0.0"))
    monkeypatch.setattr(upgrading, "upgrade_if_requested", pytest.fail)
    run(tmp_path)
    assert started


@pytest.mark.parametrize("note", ["{", '{"wanted": "9.0.0"}'])
def test_node_starts_even_if_its_update_fails(
    tmp_path: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch, note: str
) -> None:
    def fail(*arguments: object, **more: object) -> str:
        raise upgrading.UpgradeFailedError("No network")

    monkeypatch.setattr(upgrading, "install", fail)
    (tmp_path / "upgrade.json").write_text(note)
    assert "not updated" in run(tmp_path, "--auto-update")
    assert len(started) == 1
