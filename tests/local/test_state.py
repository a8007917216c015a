"""The folder that one launcher at a time owns."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from swarm_web.local import LaunchError
from swarm_web.local.site import keep_secret, locked_state


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    first = keep_secret(path)
    assert len(first) >= 32
    assert keep_secret(path) == first
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_second_launcher_is_told_who_uses_the_folder(tmp_path: Path) -> None:
    with (
        locked_state(tmp_path),
        pytest.raises(LaunchError, match=f"process id {os.getpid()}.*another --state-dir"),
        locked_state(tmp_path),
    ):
        pass


def test_the_folder_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with locked_state(tmp_path):
            pass


def leave_a_process_behind(folder: Path) -> subprocess.Popen[bytes]:
    """Return a process that inherited the lock of a launcher that is gone."""
    with locked_state(folder) as lock:
        process = subprocess.Popen(["sleep", "60"], pass_fds=[lock])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (folder / "launcher.pid").write_text(f"{ended.pid}\n")
    return process


def test_a_start_waits_for_the_parts_of_a_killed_launcher(tmp_path: Path) -> None:
    with leave_a_process_behind(tmp_path) as process:
        timer = threading.Timer(0.2, process.kill)
        timer.start()
        with locked_state(tmp_path):
            assert timer.finished.is_set()
        timer.join()


def test_parts_that_do_not_end_are_named_after_a_while(tmp_path: Path) -> None:
    with leave_a_process_behind(tmp_path) as process:
        with (
            pytest.raises(LaunchError, match=r"do not end.*fuser"),
            locked_state(tmp_path, timeout_s=0.1),
        ):
            pass
        process.kill()
