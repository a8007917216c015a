"""A whole site for a benchmark, as `make up` or `make demo` runs it, in a temporary folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local import LaunchError
from swarm_web.local.probes import HOST, answers_ok, free_port
from swarm_web.local.site import load_settings

_START_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class RunningSite:
    """A running site: its port, the settings of its processes, and the pid of its launcher."""

    port: int
    settings: dict[str, str]
    launcher: int = 0

    @property
    def socket(self) -> str:
        """The URL of the socket that nodes connect to."""
        return f"ws://{HOST}:{self.port}/ws/node/"


@contextmanager
def running_site(*verb: str, **settings: str) -> Iterator[RunningSite]:
    """Run Postgres (durable), Valkey, web, worker and beat until the block ends.

    `verb` are the verb and options for `python -m swarm_web.local`; the default is `up`.
    `settings` are environment variables of the site. Raises LaunchError if it does not start.
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


def _await_page(launcher: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not answers_ok(port, "/readyz"):
        if launcher.poll() is not None or time.monotonic() > deadline:
            raise LaunchError(f"the site did not start; it said:\n{log.read_text()}")
        time.sleep(0.2)
