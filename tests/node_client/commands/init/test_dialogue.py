"""The first-run dialogue: what it asks, what it writes, and what it does not change."""

import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands.init import machine as machine_module
from node_client.commands.init.asking import ask_questions, write_settings
from node_client.commands.init.machine import Machine

GB = 10**9
CPU = Machine(
    device="cpu", title="no GPU", free=8 * GB, memory=16 * GB, disk=99 * GB, cores=4, battery=False
)
LAPTOP = Machine(
    device="cuda", title="GPU", free=24 * GB, memory=64 * GB, disk=500 * GB, cores=8, battery=True
)
URL = "https://swarm.example.org"


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "inspect_machine", lambda folder: CPU)


def init(*arguments: str, answers: str = "", code: int = 0) -> str:
    result = CliRunner().invoke(app, ["init", *arguments], input=answers)
    assert result.exit_code == code, result.output
    return result.output


def read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "swarm-node.toml").read_text())


def ask(machine: Machine, answers: dict[str, list[str]]) -> dict[str, Any]:
    """Answer questions that contain a given word with its next answer; accept other proposals."""

    def answer(question: str, proposal: str) -> str:
        mine = next((given for word, given in answers.items() if word in question), [])
        return mine.pop(0) if mine else proposal

    return ask_questions(machine, ask=answer, console=Console(quiet=True))


@pytest.mark.usefixtures("cpu")
def test_all_proposals_are_accepted_with_yes(tmp_path: Path) -> None:
    shown = init(URL, "--yes", "--state-dir", str(tmp_path))
    assert f"Next: swarm-node join {URL} --state-dir {tmp_path}\n" in shown
    assert "4 cores" in shown
    assert re.search(r"Qwen2.5-7B-Instruct .* lacks [0-9.]+ GB", shown)
    assert f"swarm-node join {URL}" in shown
    assert read(tmp_path) == {"model": "HuggingFaceTB/SmolLM2-135M-Instruct"}


@pytest.mark.usefixtures("cpu")
def test_existing_file_is_not_overwritten_without_confirmation(tmp_path: Path) -> None:
    file = tmp_path / "swarm-node.toml"
    file.write_text("plain = true\n")
    assert "was not written" in init("--yes", "--state-dir", str(tmp_path), code=1)
    assert "was not written" in init("--state-dir", str(tmp_path), answers="\n" * 5, code=1)
    assert file.read_text() == "plain = true\n"
    init("--state-dir", str(tmp_path), answers="\n" * 4 + "y\n")
    assert "model" in read(tmp_path)


@pytest.mark.usefixtures("cpu")
def test_missing_answer_is_reported_with_the_yes_option(tmp_path: Path) -> None:
    assert "--yes" in init("--state-dir", str(tmp_path), code=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("cpu")
def test_file_can_be_written_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    init(URL, "--yes", "--here", "--state-dir", "state")
    assert "model" in read(tmp_path)


def test_answers_become_settings() -> None:
    chosen = ask(
        LAPTOP,
        {"Model": ["3"], "Hours": ["22-7"], "GPU": ["0.5"], "Show": ["y"], "Device": ["cuda:1"]},
    )
    assert chosen == {
        "gpu_fraction": 0.5,
        "model": "Qwen/Qwen2.5-0.5B-Instruct",
        "device": "cuda:1",
        "hours": "22-7",
        "pause_on_battery": True,
        "share_hardware": True,
    }
    assert tomllib.loads(write_settings(chosen)) == chosen


def test_folder_name_with_an_emoji_is_written_as_toml() -> None:
    chosen = {"model": 'models/😀 "new" \\'}
    assert tomllib.loads(write_settings(chosen)) == chosen


def test_invalid_answer_is_requested_again() -> None:
    answers = {"Hours": ["soon", "8-8", "8-9"], "GPU": ["2", "0.9"], "Show": ["maybe", "n"]}
    chosen = ask(LAPTOP, answers)
    assert (chosen["hours"], chosen["gpu_fraction"]) == ("8-9", 0.9)
    assert "share_hardware" not in chosen


@pytest.mark.slow
def test_dialogue_runs_in_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "node_client", "init", URL, "--state-dir", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "100"}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    screen = ""
    for question, answer in (
        ("Model", "tiny"),
        ("Device", "cpu"),
        ("Hours", "22-7"),
        ("Show", "n"),
        ("Write it", "y"),
    ):
        while not re.search(rf"{question}[^\n]*\]: $", screen):
            screen += os.read(ours, 4096).decode()
        os.write(ours, f"{answer}\n".encode())
        screen = ""
    assert process.wait(60) == 0
    os.close(ours)
    assert read(tmp_path) == {"model": "tiny", "device": "cpu", "hours": "22-7"}
