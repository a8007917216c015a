"""Test the state directory, which one launcher at a time uses."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from swarm_web.local import LaunchError
from swarm_web.local.site import keep_secret, locked_state


def test_secret_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    first = keep_secret(path)
    assert len(first) >= 32
    assert keep_secret(path) == first
    assert path.stat().st_mode & 0o777 == 0o600


def test_locked_directory_is_rejected_with_the_process_id_of_its_user(tmp_path: Path) -> None:
    with (
        locked_state(tmp_path),
        pytest.raises(LaunchError, match=f"process id {os.getpid()}.*another --state-dir"),
        locked_state(tmp_path),
    ):
        pass


def test_lock_is_released_at_the_end_of_the_block(tmp_path: Path) -> None:
    for _ in range(2):
        with locked_state(tmp_path):
            pass


def start_orphan(folder: Path) -> subprocess.Popen[bytes]:
    """Return a process that inherited the lock of an ended launcher."""
    with locked_state(folder) as lock:
        process = subprocess.Popen(["sleep", "60"], pass_fds=[lock])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (folder / "launcher.pid").write_text(f"{ended.pid}\n")
    return process


def test_start_waits_for_orphans_of_a_killed_launcher(tmp_path: Path) -> None:
    with start_orphan(tmp_path) as process:
        timer = threading.Timer(0.2, process.kill)
        timer.start()
        with locked_state(tmp_path):
            assert timer.finished.is_set()
        timer.join()


def test_start_fails_with_a_hint_if_orphans_do_not_end(tmp_path: Path) -> None:
    with start_orphan(tmp_path) as process:
        with (
            pytest.raises(LaunchError, match=r"do not end.*fuser"),
            locked_state(tmp_path, timeout_s=0.1),
        ):
            pass
        process.kill()
