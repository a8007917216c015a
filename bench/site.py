"""Run a whole site for a benchmark, as `make up` or `make demo` does, or one server process."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

from swarm_web.local import LaunchError
from swarm_web.local.probes import HOST, answers_ok, free_port
from swarm_web.local.process import SiteProcess, spawn_options
from swarm_web.local.site import load_settings

_START_TIMEOUT_S = 180.0
_READY_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class RunningSite:
    """A running site: its port, the settings of its processes, and the pid of its launcher."""

    port: int
    settings: dict[str, str]
    launcher: int

    @property
    def socket(self) -> str:
        """The URL of the socket that nodes connect to."""
        return f"ws://{HOST}:{self.port}/ws/node/"


@contextmanager
def running_site(*verb: str, **settings: str) -> Iterator[RunningSite]:
    """Run Postgres (durable), Valkey, web, worker and beat until the block ends.

    `verb` are the verb and options for `python -m swarm_web.local`; the default is `up`.
    `settings` are environment variables of the site. Raises LaunchError if the site does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="murmuration-bench-"))
    folder.chmod(0o711)  # Postgres may run as another user.
    port = free_port()
    command = [sys.executable, "-m", "swarm_web.local", *(verb or ("up",))]
    log = folder / "site.log"
    with log.open("wb") as output:
        launcher = subprocess.Popen(
            [*command, "--port", str(port), "--state-dir", str(folder / "state")],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LOG_LEVEL": "WARNING", **settings},
            process_group=0,
        )
    try:
        _await_page(launcher, port, log)
        yield RunningSite(port, load_settings(folder / "state"), launcher.pid)
    finally:
        launcher.send_signal(signal.SIGINT)
        launcher.wait(timeout=60)
        shutil.rmtree(folder)


@contextmanager
def site_with_tables() -> Iterator[RunningSite]:
    """Run a site as `make up` does, and set up Django in this process with the site's settings.

    The block can then use the site's models. Modules with models must be imported in the block.
    """
    with running_site() as site:
        os.environ |= {**site.settings, "LOG_LEVEL": "ERROR"}
        django.setup()
        yield site


def await_true(
    condition: Callable[[], bool], problem: str, *, within_s: float, poll_s: float = 0.2
) -> None:
    """Wait until `condition` returns true. Raises TimeoutError with the text `problem`."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(problem)
        time.sleep(poll_s)


@contextmanager
def running_process(site_process: SiteProcess) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, wait until it is ready, and stop it after the block.

    Raises TimeoutError if the process ends or is not ready within a minute.
    """
    process = subprocess.Popen(
        site_process.argv, stdout=subprocess.DEVNULL, **spawn_options(site_process)
    )
    try:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not site_process.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"{site_process.name} did not start")
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(site_process.stop_signal)
        process.wait(timeout=20)


def _await_page(launcher: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not answers_ok(port, "/readyz"):
        if launcher.poll() is not None or time.monotonic() > deadline:
            raise LaunchError(f"the site did not start; it said:\n{log.read_text()}")
        time.sleep(0.2)
