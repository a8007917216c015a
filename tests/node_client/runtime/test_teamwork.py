"""A node of two processes: one leads, one follows, and both end together. Real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PATIENCE_S = 120
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
PAIR = [sys.executable, "-m", "tests.node_client.pair"]
TRAIN = ["train", "--offline", "--plain", "--state-dir"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def launch(launcher: list[str], state: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*launcher, "node_client", *TRAIN, str(state), *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def endless(state: Path) -> Iterator[subprocess.Popen[str]]:
    """Two processes that train until they are stopped."""
    running = launch([*TORCHRUN, "-m"], state)
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def test_two_processes_train_as_one_node_and_end_after_its_steps(state: Path) -> None:
    output, _ = launch([*TORCHRUN, "-m"], state, "--steps", "2").communicate(timeout=PATIENCE_S)
    assert output.count("saved a checkpoint at step 2") == 1
    assert output.count("Stopped. step 2") == 1
    assert [path.name for path in (state / "checkpoints").glob("step-*")] == ["step-00000002"]


def test_ctrl_c_in_the_terminal_lets_the_leader_save_and_both_end(
    endless: subprocess.Popen[str],
) -> None:
    assert endless.stdout is not None
    while "step 1 " not in (line := endless.stdout.readline()):
        assert line
    os.killpg(endless.pid, signal.SIGINT)  # as a terminal does
    output, _ = endless.communicate(timeout=PATIENCE_S)
    assert "saved a checkpoint" in output


def test_a_leader_that_may_not_run_takes_its_follower_with_it(state: Path) -> None:
    refused = launch(PAIR, state, "--resume")
    output, _ = refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode != 0
    assert output.count("error: ") == 1


def test_a_leader_that_fails_in_the_middle_of_an_order_leaves_nobody_waiting() -> None:
    ran = subprocess.run(
        [*PAIR, "tests.node_client.runtime.deserter"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode != 0
    assert "RuntimeError: failed before Answer" in ran.stderr


def test_a_follower_without_memory_ends_both_with_one_error_and_its_remedy(state: Path) -> None:
    ran = subprocess.run(
        [*PAIR, "tests.node_client.runtime.cramped", *TRAIN, str(state)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode != 0
    assert ran.stdout.count("error: ") == 1
    assert ran.stdout.count("or with a smaller model.") == 1
