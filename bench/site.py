"""A whole site for a benchmark: what `make up` or `make demo` runs, in a folder that is removed."""

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
    """The address of a running site, the settings of its processes, and its launcher's pid."""

    port: int
    settings: dict[str, str]
    launcher: int = 0

    @property
    def socket(self) -> str:
        """Where nodes connect."""
        return f"ws://{HOST}:{self.port}/ws/node/"


@contextmanager
def running_site(*verb: str, **settings: str) -> Iterator[RunningSite]:
    """Run Postgres (durable), Valkey, web, worker and beat until the block ends.

    `verb` is the launcher's, with its options: `up`, unless another is given. `settings` are the
    site's, as its environment names them.
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
