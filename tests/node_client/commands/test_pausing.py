"""`pause`, `resume` and `status --healthy`, on state folders and on a running client."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.storage.run_record import RunRecord, write_run
from node_client.storage.state import NodeRecord, StateDir
from tests.node_client.forked import running_forked

URL = "https://swarm.example.org"
PATIENCE_S = 60


def swarm_node(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    state = StateDir(tmp_path)
    state.save(NodeRecord(url=URL, token="t", node="heron"))
    return state


def test_stopped_node_is_paused_for_its_next_start(state: StateDir) -> None:
    folder = str(state.path)
    assert "heron is not running; after its next start" in swarm_node(
        "pause", "--state-dir", folder
    )
    assert "does not pause" in swarm_node("resume", "--state-dir", folder)
    assert "was not paused" in swarm_node("resume", "--state-dir", folder)


def test_pause_of_a_running_node_shows_its_end(state: StateDir) -> None:
    with state.lock():
        shown = swarm_node("pause", URL, "--for", "2h", "--state-dir", str(state.path))
    assert "heron pauses after its step, until 2" in shown


def test_pause_without_an_address_pauses_all_nodes_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("heron", "kestrel"):
        folder = tmp_path / "swarm-node" / name
        folder.mkdir(parents=True)
        StateDir(folder).save(NodeRecord(url=URL, token="t", node=name))
    shown = swarm_node("pause")
    assert "heron" in shown
    assert "kestrel" in shown
    assert len(list(tmp_path.rglob("pause.json"))) == 2


def test_pause_beyond_the_year_9999_is_refused(state: StateDir) -> None:
    shown = swarm_node("pause", "--for", "99999999d", "--state-dir", str(state.path), code=1)
    assert "ends after the year 9999" in shown


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_missing_node_cannot_be_paused_or_resumed(tmp_path: Path, command: str) -> None:
    assert "no state folder" in swarm_node(command, URL, "--state-dir", str(tmp_path / "x"), code=1)


def test_run_without_recent_steps_is_not_healthy(state: StateDir) -> None:
    ago = "2026-01-01T12:00:00+00:00"
    with state.lock():
        write_run(state, RunRecord(pid=1, started_at=ago, phase="running", since=ago, noted_at=ago))
        shown = swarm_node("status", "--healthy", "--state-dir", str(state.path), code=1)
        assert f"no step since {ago}" in shown
        swarm_node("status", "--healthy", "--within", "99999d", "--state-dir", str(state.path))


def here(folder: Path) -> dict[str, str]:
    [line] = swarm_node("status", "--json", "--state-dir", str(folder)).splitlines()
    run: dict[str, str] | None = json.loads(line)["here"]["run"]
    return run or {"state": "none"}


def await_state(folder: Path, state: str) -> dict[str, str]:
    deadline = time.monotonic() + PATIENCE_S
    while (run := here(folder))["state"] != state:
        assert time.monotonic() < deadline, run
        time.sleep(0.1)
    return run


@pytest.mark.slow
def test_training_client_is_paused_resumed_and_killed(tmp_path: Path) -> None:
    folder, log = tmp_path / "state", tmp_path / "log"
    arguments = ("train", "--offline", "--plain", "--state-dir", str(folder))
    with running_forked("node_client", *arguments, log=log):
        run = await_state(folder, "running")
        swarm_node("pause", "--state-dir", str(folder))
        paused = await_state(folder, "paused")
        assert paused["why"] == "its owner paused it"
        assert "paused: its owner paused it" in log.read_text()
        swarm_node("status", "--healthy", "--state-dir", str(folder))
        assert "paused since" in swarm_node("status", "--state-dir", str(folder))
        swarm_node("resume", "--state-dir", str(folder))
        run = await_state(folder, "running")
        os.kill(int(run["pid"]), signal.SIGKILL)
        await_state(folder, "killed")
    assert "killed" in swarm_node("status", "--state-dir", str(folder))
    swarm_node("status", "--healthy", "--state-dir", str(folder), code=1)
