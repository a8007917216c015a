"""Real processes for tests: the site's parts and nodes, started, watched and ended."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx
from django.conf import settings
from django.db import connection

from swarm_web.local import commands

Found = TypeVar("Found")
PROJECT = Path(__file__).resolve().parent.parent
POLL_S = 0.05


def eventually(find: Callable[[], Found], *, within_s: float, what: str) -> Found:
    """Return what `find` finds once it is true: for states that other processes bring about."""
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

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def output(self) -> str:
        """Return what it wrote so far."""
        return self.log.read_text(errors="replace")


@contextmanager
def running(
    command: tuple[str, ...], *, environment: Mapping[str, str], log: Path
) -> Iterator[Running]:
    """Run a command of the project until the block ends."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            commands.here(command),
            cwd=PROJECT,
            env=dict(environment),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Running(process, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def site_environment(url: str) -> dict[str, str]:
    """Return the environment in which the site's processes use this test's database."""
    database = connection.settings_dict
    address = f"{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}"
    return {
        **os.environ,
        "DATABASE_URL": f"postgres://{address}/{database['NAME']}",
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "SITE_URL": url,
        "HTTPS": "0",
        "DEBUG": "1",
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def running_site(folder: Path, *, background: bool) -> Iterator[str]:
    """Run the web process, and worker and beat too if `background`; yield the site's URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = site_environment(url)
    parts = {"web": commands.serve_web(host="127.0.0.1", port=port)}
    if background:
        parts["worker"] = commands.WORKER
        parts["beat"] = commands.run_beat(str(folder / "celerybeat-schedule"))
    with ExitStack() as stack:
        started = [
            stack.enter_context(running(command, environment=environment, log=folder / name))
            for name, command in parts.items()
        ]
        eventually(lambda: _answers(url, started[0]), within_s=60, what=f"{url}/healthz answers")
        yield url


def _answers(url: str, web: Running) -> bool:
    if web.process.poll() is not None:
        raise AssertionError(f"the web process ended: {web.output()}")
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False
