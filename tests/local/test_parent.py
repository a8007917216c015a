"""Test that an interrupt that only `make` receives still stops the launcher."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarm_web.local.supervisor import catches_interrupt

if sys.platform != "linux":
    pytest.skip("only Linux shows which signals a process catches", allow_module_level=True)

IMPORTS = "import asyncio, os; from swarm_web.local.supervisor import watch_for_interrupt; "
WAIT = (
    "watch = watch_for_interrupt(os.getppid()); print('up', flush=True); "
    "asyncio.run(watch); print('seen')"
)


@pytest.mark.slow
def test_sigint_sent_only_to_make_is_noticed(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make is not None
    (tmp_path / "Makefile").write_text(f'go:\n\t@exec {sys.executable} -c "{IMPORTS}{WAIT}"\n')
    with subprocess.Popen(
        [make, "--no-print-directory", "-f", str(tmp_path / "Makefile"), "go"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        preexec_fn=stop_ignoring_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=20)[0] == "seen\n"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def stop_ignoring_interrupts() -> None:
    """Undo the handling of SIGINT in commands that a shell runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_parent_without_a_sigint_handler_is_not_watched() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            assert not catches_interrupt(sleeper.pid)
        finally:
            sleeper.kill()
