"""A run as seen from outside: its standard output, and how it ends."""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from node_client.commands.problems import FAILED
from node_client.display.terminal import LineFormatter
from node_client.runtime.showing import show_panel
from tests.node_client.fakes import toy_policy
from tests.node_client.forked import run_forked
from tests.node_client.panel_views import full_view


def two_steps(folder: Path) -> list[str]:
    """Return the arguments with which `swarm-node` trains a toy model for two steps."""
    toy_policy().save(folder / "model")
    return [
        *("train", "--offline", "--steps", "2", "--model", str(folder / "model")),
        *("--state-dir", str(folder / "state")),
    ]


def train_with_json(
    folder: Path, *options: str, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run these steps in a process that prints events to standard output."""
    return subprocess.run(
        [sys.executable, "-m", "node_client", *two_steps(folder), "--json", *options],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )


def train_without_account(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run these steps with a wandb that knows no account, so that the run fails."""
    without_account = "class Error(Exception): ...\ndef login(prompt): return False\n"
    (folder / "wandb.py").write_text(without_account)
    return train_with_json(folder, *options, "--report-to", "wandb", PYTHONPATH=str(folder))


@pytest.mark.slow
def test_json_output_contains_only_events(tmp_path: Path) -> None:
    ended = train_with_json(tmp_path)
    assert ended.returncode == 0, ended.stderr
    printed = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [entry["event"] for entry in printed] == [
        "started",
        "step",
        "step",
        "checkpoint",
        "stopped",
    ]
    assert (printed[0]["site"], printed[0]["arm"]) == (None, "isolated")
    assert [entry["step"] for entry in printed[1:]] == [1, 2, 2, 2]
    assert printed[1]["memory"] > 2**20
    assert printed[1]["tokens_per_second"] > 0
    assert "Stopped." in ended.stderr


@pytest.mark.slow
def test_events_of_a_run_that_fails_before_its_first_step_are_complete(tmp_path: Path) -> None:
    ended = train_without_account(tmp_path)
    assert ended.returncode == FAILED, ended.stderr
    events = [json.loads(line)["event"] for line in ended.stdout.splitlines()]
    assert events == ["started", "problem", "stopped"]


@pytest.mark.slow
def test_fresh_run_that_cannot_start_leaves_the_earlier_checkpoints_in_place(
    tmp_path: Path,
) -> None:
    earlier = tmp_path / "state" / "checkpoints" / "step-00000012"
    earlier.mkdir(parents=True)
    ended = train_without_account(tmp_path, "--fresh")
    assert ended.returncode == FAILED, ended.stderr
    assert earlier.is_dir()


@pytest.mark.slow
def test_training_continues_and_is_saved_if_the_events_are_not_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = train_with_json(tmp_path, stdout=writer)
    os.close(writer)
    assert ended.returncode == 0, ended.stderr
    assert "saved a checkpoint at step 2" in ended.stderr
    assert ended.stderr.count("Broken pipe") == 1


@pytest.mark.slow
def test_each_step_without_a_terminal_is_a_line_with_its_time(tmp_path: Path) -> None:
    ended = run_forked("node_client", *two_steps(tmp_path))
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert "\x1b" not in ended.stdout
    [step] = [line for line in lines if "step 1 · training reward 0.000" in line]
    assert step[:4].isdigit()
    assert any("saved a checkpoint at step 2" in line for line in lines)


@pytest.mark.parametrize(
    ("level", "line"),
    [(logging.INFO, "the season sums [2J has ended"), (logging.WARNING, "warning: the season")],
)
def test_log_line_cannot_control_a_terminal(level: int, line: str) -> None:
    message = "the season %s has ended"
    record = logging.LogRecord("n", level, "f", 1, message, ("sums\x1b[2J\n",), None)
    text = LineFormatter("%(message)s").format(record)
    assert text.startswith(line)
    assert text.isprintable()


async def test_live_panel_leaves_space_for_the_echo_of_ctrl_c() -> None:
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    showing = asyncio.create_task(show_panel(full_view(), console=console, refresh_s=0))
    await asyncio.sleep(0)
    showing.cancel()
    await asyncio.wait([showing])
    assert isinstance(console.file, StringIO)
    drawn = [line for line in console.file.getvalue().splitlines() if "│" in line]
    assert drawn
    assert max(len(re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", line)) for line in drawn) == 77
