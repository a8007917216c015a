"""A site of real processes that a test can kill, freeze and restart one by one."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

from swarm_web.local import commands
from swarm_web.local.databases import prepare_valkey
from swarm_web.local.probes import HOST, answers_ok, free_port
from swarm_web.local.process import SiteProcess
from tests.processes import PROJECT, Running, running
from tests.swarm.sites import site_environment

WEB = ("web-1", "web-2")


class BrokenSite:
    """Two web processes, worker and beat on the test's database, and their own Valkey."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._running: dict[str, Running] = {}
        self.ports = [free_port() for _ in WEB]
        self._clock = folder / "clock"
        self.set_clock(ahead_s=0)
        valkey = prepare_valkey(folder / "valkey")
        self.redis_url = valkey.url
        self._parts = {"valkey": valkey.process} | self._site_parts(valkey.url)
        for name in self._parts:
            self.start(name)

    @property
    def url(self) -> str:
        """The address of the first web process."""
        return f"http://{HOST}:{self.ports[0]}"

    def start(self, name: str) -> None:
        """Start a part, and return when it is ready."""
        log = self._folder / f"{name}.log"
        self._running[name] = self._stack.enter_context(running(self._parts[name], log=log))

    def kill(self, name: str) -> None:
        """Kill a part with SIGKILL."""
        self._running[name].kill()

    def empty_valkey(self) -> None:
        """Delete the data that the killed Valkey had saved."""
        for file in (self._folder / "valkey").glob("*.rdb"):
            file.unlink()

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Stop a part with SIGSTOP; its connections stay open."""
        process = self._running[name].process
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def set_clock(self, *, ahead_s: float) -> None:
        """Move the wall clock of web, worker and beat."""
        self._ahead = timedelta(seconds=ahead_s)
        # Replaced atomically, because other processes read it all the time.
        fresh = self._clock.with_suffix(".fresh")
        fresh.write_text(str(ahead_s))
        fresh.rename(self._clock)

    def now(self) -> datetime:
        """Return the time of the site's clock."""
        return timezone.now() + self._ahead

    def _site_parts(self, redis_url: str) -> dict[str, SiteProcess]:
        environment = site_environment(self.url) | {"REDIS_URL": redis_url}
        parts = {
            "worker": self._part("worker", commands.WORKER, environment),
            "beat": self._part("beat", commands.run_beat(), environment),
        }
        for name, port in zip(WEB, self.ports, strict=True):
            part = self._part(name, commands.serve_web(host=HOST, port=port), environment)
            parts[name] = replace(part, is_ready=_answering(port))
        return parts

    def _part(
        self, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> SiteProcess:
        """Return a process of the site that uses the clock that the test moves."""
        python, dash_m, *rest = command
        shifted = (python, dash_m, "tests.swarm.faults.shifted", str(self._clock), *rest)
        return SiteProcess(
            name=name,
            command=commands.here(shifted),
            environment=dict(environment),
            folder=PROJECT,
        )


def _answering(port: int) -> Callable[[], bool]:
    return lambda: answers_ok(port, "/healthz")


@contextmanager
def broken_site(folder: Path) -> Iterator[BrokenSite]:
    """Run a site until the block ends."""
    with ExitStack() as stack:
        yield BrokenSite(folder, stack)
