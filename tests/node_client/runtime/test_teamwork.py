"""A node of two processes: one leads, one follows, and both end together. Real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node_client.forked import PATIENCE_S, run_forked

pytestmark = pytest.mark.slow

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
PAIR = "tests.node_client.pair"
TRAIN = ["train", "--offline", "--plain", "--state-dir"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def endless(state: Path) -> Iterator[subprocess.Popen[str]]:
    """Start two processes that train until they are stopped."""
    running = subprocess.Popen(
        [*TORCHRUN, "-m", "node_client", *TRAIN, str(state)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def test_two_processes_train_as_one_node_and_end_after_its_steps(state: Path) -> None:
    ran = run_forked(PAIR, "node_client", *TRAIN, str(state), "--steps", "2")
    assert ran.returncode == 0, ran.stderr
    output = ran.stdout + ran.stderr
    assert output.count("saved a checkpoint at step 2") == 1
    assert output.count("Stopped. step 2") == 1
    assert [path.name for path in (state / "checkpoints").glob("step-*")] == ["step-00000002"]


def test_ctrl_c_lets_the_leader_save_and_ends_both_processes(
    endless: subprocess.Popen[str],
) -> None:
    assert endless.stdout is not None
    while "step 1 " not in (line := endless.stdout.readline()):
        assert line
    os.killpg(endless.pid, signal.SIGINT)  # as a terminal does
    output, _ = endless.communicate(timeout=PATIENCE_S)
    assert "saved a checkpoint" in output


def test_refused_leader_ends_its_follower(state: Path) -> None:
    refused = run_forked(PAIR, "node_client", *TRAIN, str(state), "--resume")
    assert refused.returncode == 1
    assert (refused.stdout + refused.stderr).count("error: ") == 1


def test_leader_that_fails_while_a_message_is_processed_ends_its_follower() -> None:
    ran = run_forked(PAIR, "tests.node_client.runtime.deserter")
    assert ran.returncode == 1
    assert "RuntimeError: failed before GenerateAnswers" in ran.stderr


def test_follower_without_memory_ends_both_with_one_error_and_its_remedy(state: Path) -> None:
    ran = run_forked(PAIR, "tests.node_client.runtime.cramped", *TRAIN, str(state))
    assert ran.returncode == 1
    output = ran.stdout + ran.stderr
    assert output.count("error: ") == 1
    assert output.count("or with a smaller model.") == 1
