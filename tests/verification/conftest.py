"""A judged site per module. Each test's changes to it are rolled back."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone
from typer.testing import CliRunner, Result

from node_client.cli import app
from node_client.commands.verification import download, season_command
from swarm_tasks import pool
from swarm_tasks.verifier import Verifier
from swarm_web.dashboard.downloads import batches
from tests.verification.honest import SITE, JudgedSite, borrowed, read_page

Check = Callable[..., Result]


@pytest.fixture(scope="module")
def judged(
    module_rows: None, verifier: Verifier, tmp_path_factory: pytest.TempPathFactory
) -> JudgedSite:
    """Three rounds, judged and closed."""
    site = JudgedSite(tmp_path_factory.mktemp("nodes"), verifier, now=timezone.now())
    for _ in range(3):
        site.play()
    return site


@pytest.fixture
def check(
    judged: JudgedSite, tmp_path: Path, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> Check:
    """Run a command of the client against the site, as amber's owner would."""
    monkeypatch.setattr(download, "_stream", read_page)
    # The page is read in the test's own transaction, so its connection must stay open.
    monkeypatch.setattr(batches, "close_old_connections", lambda: None)
    monkeypatch.setattr(pool, "VerifierPool", lambda count: borrowed(verifier))
    monkeypatch.setattr(season_command, "PAUSE_S", 0)
    state = tmp_path / "amber"
    shutil.copytree(judged.members["amber"].state.path, state)

    def run(command: str, *arguments: str, folder: Path = state) -> Result:
        command_line = [command, SITE.base, *arguments, "--state-dir", str(folder)]
        return CliRunner().invoke(app, command_line)

    return run
