"""A site as a person starts it: `python -m swarm_web.local up`, a process of its own."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local import LaunchError
from swarm_web.local.probes import HOST, free_port, require_free
from swarm_web.local.process import SiteProcess
from swarm_web.local.site import fingerprint
from tests.local.processes import children_of
from tests.processes import PROJECT, Running, running

# What tests/services.py sets for this process; a person's shell has none of it.
_OURS = (
    *("DEBUG", "SECRET_KEY", "STATIC_ROOT", "DIST_DIR"),
    *("DATABASE_URL", "DATABASE_POOLER", "REDIS_URL", "REDIS_CLUSTER", "CELERY_BROKER_URL"),
)
# By what in its command line each of the site's parts is known.
_SIGNS = {
    "postgres": "/postgres -D ",
    "valkey": "-server ",
    "web": " uvicorn ",
    "worker": " worker ",
    "beat": " beat ",
}


def plain_environment() -> dict[str, str]:
    """Return the environment of a shell that knows nothing of the tests' servers."""
    return {name: value for name, value in os.environ.items() if name not in _OURS}


@dataclass(frozen=True)
class LaunchedSite:
    """A running launcher, and where its site is."""

    launcher: Running
    state: Path
    port: int

    @property
    def url(self) -> str:
        """The site's address."""
        return f"http://{HOST}:{self.port}"

    def console(self) -> str:
        """Return what the launcher wrote so far."""
        return self.launcher.output()

    def pid_of(self, part: str) -> int | None:
        """Return the process id of one of the five parts, None while it is down."""
        for pid, command in children_of(self.launcher.pid).items():
            if _SIGNS[part] in command:
                return pid
        return None


def spare_wheel(state: Path) -> None:
    """Let the launcher think that it has built the client's wheel, where nobody installs it."""
    state.mkdir()
    (state / "dist.stamp").write_text(fingerprint([PROJECT / "node_client"]))


@contextmanager
def launched_site(
    state: Path, *, environment: Mapping[str, str] | None = None, web_processes: int = 1
) -> Iterator[LaunchedSite]:
    """Run `up` from when it has told its address to the end of the block."""
    port = _free_row(web_processes)
    log = state.with_name(f"{state.name}.console")
    options = (
        *("up", "--port", str(port), "--web-processes", str(web_processes)),
        *("--state-dir", str(state)),
    )
    launcher = SiteProcess(
        name="launcher",
        command=(sys.executable, "-m", "swarm_web.local", *options),
        environment=plain_environment() if environment is None else environment,
        folder=PROJECT,
        is_ready=lambda: f"is at http://{HOST}:{port}" in log.read_text(errors="replace"),
        stop_signal=signal.SIGINT,
    )
    with running(launcher, log=log) as started:
        yield LaunchedSite(started, state, port)


def _free_row(number: int) -> int:
    """Return the first of so many ports in a row that nobody listens on now."""
    while True:
        first = free_port()
        try:
            for port in range(first, first + number):
                require_free(port)
        except LaunchError:
            continue
        return first
