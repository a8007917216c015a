"""A node whose terminal is closed stops as after Ctrl-C."""

import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from node_client.storage.run_record import read_run
from node_client.storage.state import StateDir


def run_in_terminal(*words: str) -> tuple[int, int]:
    """Start a program in its own terminal; return its process id and the terminal's other end."""
    process, terminal = pty.fork()
    if process == 0:
        # Tests under nohup ignore the signal, and the program would inherit that.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(words[0], words)
    return process, terminal


@pytest.mark.slow
def test_node_saves_its_work_when_its_terminal_is_closed(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state")
    process, terminal = run_in_terminal(
        *(sys.executable, "-m", "node_client", "train", "--offline"),
        *("--save-steps", "100000", "--state-dir", str(state.path)),
    )
    drawn = b""
    while b"training reward" not in drawn:
        drawn += os.read(terminal, 65536)
    os.close(terminal)
    os.waitpid(process, 0)
    run, progress = read_run(state), state.load_progress()
    assert run is not None
    assert (run.state, run.why) == ("stopped", "")
    assert progress is not None
