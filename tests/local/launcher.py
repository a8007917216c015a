"""Start a site with `python -m swarm_web.local up`, in a process of its own."""

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

# Set by tests/services.py for this process; a user's shell has none of them.
_OURS = (
    *("DEBUG", "SECRET_KEY", "STATIC_ROOT", "DIST_DIR"),
    *("DATABASE_URL", "DATABASE_POOLER", "REDIS_URL", "REDIS_CLUSTER", "CELERY_BROKER_URL"),
)
# The part of the command line that identifies each of the site's parts.
_SIGNS = {
    "postgres": "/postgres -D ",
    "valkey": "-server ",
    "web": " uvicorn ",
    "worker": " worker ",
    "beat": " beat ",
}


def plain_environment() -> dict[str, str]:
    """Return the environment without the addresses of the tests' servers."""
    return {name: value for name, value in os.environ.items() if name not in _OURS}


@dataclass(frozen=True)
class LaunchedSite:
    """A running launcher with the state directory and the port of its site."""

    launcher: Running
    state: Path
    port: int

    @property
    def url(self) -> str:
        """The site's address."""
        return f"http://{HOST}:{self.port}"

    def console(self) -> str:
        """Return what the launcher has written so far."""
        return self.launcher.output()

    def pid_of(self, part: str) -> int | None:
        """Return the process id of one of the five parts, None while it is not running."""
        for pid, command in children_of(self.launcher.pid).items():
            if _SIGNS[part] in command:
                return pid
        return None


def skip_wheel_build(state: Path) -> None:
    """Mark the client's wheel as built, for tests that do not install it."""
    state.mkdir()
    (state / "dist.stamp").write_text(fingerprint([PROJECT / "node_client"]))


@contextmanager
def launched_site(
    state: Path, *, environment: Mapping[str, str] | None = None, web_processes: int = 1
) -> Iterator[LaunchedSite]:
    """Run `up`; enter the block when it has printed its address, stop it after the block."""
    port = _find_free_ports(web_processes)
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


def _find_free_ports(number: int) -> int:
    """Return the first of `number` consecutive ports that are free."""
    while True:
        first = free_port()
        try:
            for port in range(first, first + number):
                require_free(port)
        except LaunchError:
            continue
        return first
