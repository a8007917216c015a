"""A run as others see it: what stands on standard output, and how it ends."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from node_client.display.terminal import LineFormatter
from tests.node_client.fakes import toy_policy


def train_offline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Make two steps with a toy model in a process of its own."""
    toy_policy().save(folder / "model")
    return subprocess.run(
        [
            *(sys.executable, "-m", "node_client", "train", "--offline", "--steps", "2"),
            *("--model", str(folder / "model"), "--state-dir", str(folder / "state"), *arguments),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_with_json_standard_output_holds_events_and_nothing_else(tmp_path: Path) -> None:
    ended = train_offline(tmp_path, "--json")
    assert ended.returncode == 0, ended.stderr
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [said["event"] for said in told] == ["started", "step", "step", "checkpoint", "stopped"]
    assert (told[0]["site"], told[0]["arm"]) == (None, "isolated")
    assert [said["step"] for said in told[1:]] == [1, 2, 2, 2]
    assert told[1]["memory"] > 2**20
    assert told[1]["tokens_per_second"] > 0
    assert "Stopped." in ended.stderr


def test_without_a_terminal_each_step_is_a_line_with_its_time(tmp_path: Path) -> None:
    ended = train_offline(tmp_path)
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
def test_a_line_of_the_log_cannot_steer_a_terminal(level: int, line: str) -> None:
    message = "the season %s has ended"
    record = logging.LogRecord("n", level, "f", 1, message, ("sums\x1b[2J\n",), None)
    text = LineFormatter("%(message)s").format(record)
    assert text.startswith(line)
    assert text.isprintable()
