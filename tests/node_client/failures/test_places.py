"""`swarm-node` with a state folder that is unusable or has no space."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from node_client.commands.problems import FAILED
from tests.node_client.failures.ending import train
from tests.node_client.fakes import toy_policy

pytestmark = pytest.mark.slow

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount a file system at the folder; skip the test if mounting is not permitted."""
    folder.mkdir()
    command = ("mount", "-t", "tmpfs", "-o", options, "none", str(folder))
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(("umount", str(folder)), check=True)


def test_file_instead_of_the_state_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    ended = train(tmp_path / "state")
    assert ended.code == FAILED
    assert str(tmp_path / "state") in ended.stderr
    assert "--state-dir" in ended.stderr


@pytest.mark.parametrize("name", ["node.json", "task.key", "lock"])
def test_folder_instead_of_a_state_file_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    ended = train(tmp_path)
    assert ended.code == FAILED
    assert str(tmp_path) in ended.stderr
    assert "Is a directory" in ended.stderr
    assert "--state-dir" in ended.stderr


@as_root
def test_read_only_file_system_is_detected_before_the_start(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "ro"):
        ended = train(tmp_path / "disk" / "state")
    assert ended.code == FAILED
    assert "Read-only file system" in ended.stderr


@as_root
def test_unwritable_folder_is_detected_before_the_start(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=10m"):
        state = tmp_path / "disk"
        (state / "lock").touch()
        remount = ("mount", "-o", "remount,ro", str(state))
        subprocess.run(remount, check=True)
        ended = train(state)
    assert ended.code == FAILED
    assert f"The state folder {state} cannot be used" in ended.stderr


@as_root
def test_disk_without_space_for_a_checkpoint_is_detected_before_the_start(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    with mounted(tmp_path / "disk", "size=60k"):
        ended = train(tmp_path / "disk", "--model", str(tmp_path / "model"))
    assert ended.code == FAILED
    assert "A checkpoint takes about" in ended.stderr
    assert "Free some space" in ended.stderr
    assert "step 1" not in ended.out
