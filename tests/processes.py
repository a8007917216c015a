"""Real processes for tests, started like those of the launcher.

Imports no Django, because the plugin `tests.services` uses it before there are settings.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from swarm_web.local.process import SiteProcess, spawn_options

Found = TypeVar("Found")
PROJECT = Path(__file__).resolve().parent.parent
POLL_S = 0.02


def eventually(find: Callable[[], Found], *, within_s: float, what: str) -> Found:
    """Return the first true result of `find`, for effects of other processes."""
    deadline = time.monotonic() + within_s
    while not (found := find()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s: {what}")
        time.sleep(POLL_S)
    return found


@dataclass(frozen=True)
class Running:
    """A process with its output in a file, so that a full pipe never blocks it."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def output(self) -> str:
        """Return what the process has written so far."""
        return self.log.read_text(errors="replace")


@contextmanager
def running(
    site_process: SiteProcess, *, log: Path, keep_open: Sequence[int] = ()
) -> Iterator[Running]:
    """Run a process without a supervisor, from when it is ready to the end of the block.

    Its output is appended to `log`.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            site_process.argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            **spawn_options(site_process, keep_open=keep_open),
        )
    started = Running(process, log)
    try:
        _await_ready(site_process, started)
        yield started
    finally:
        process.send_signal(site_process.stop_signal)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.send_signal(site_process.kill_signal)
            process.wait()


def _await_ready(site_process: SiteProcess, started: Running) -> None:
    deadline = time.monotonic() + site_process.ready_timeout_s
    while not site_process.is_ready():
        if started.process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(
                f"{site_process.name} did not start; its output:\n{started.output()}"
            )
        time.sleep(POLL_S)
