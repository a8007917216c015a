"""The site of the web benchmark: databases that keep their data, and uvicorn as in production."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil

from bench.report import PROJECT
from bench.site import running_process
from swarm_web.local.commands import COLLECT_STATIC, MIGRATE, here, serve_web
from swarm_web.local.databases import prepare_postgres, prepare_valkey
from swarm_web.local.probes import HOST, answers_ok, free_port
from swarm_web.local.process import SiteProcess
from swarm_web.local.site import LocalSite, site_settings

FOLDER = PROJECT / "var" / "bench-web"


@dataclass(frozen=True)
class BenchServer:
    """A running web server of one or several processes."""

    port: int
    process: psutil.Process

    def rss_mb(self) -> float:
        """Return the resident memory of all server processes, in units of 2**20 bytes."""
        return sum(part.memory_info().rss for part in self._parts()) / 2**20

    def cpu_s(self) -> float:
        """Return the CPU seconds that all server processes have used."""
        return sum(sum(part.cpu_times()[:2]) for part in self._parts())

    def _parts(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def kept_databases() -> Iterator[dict[str, str]]:
    """Run Postgres and Valkey, which keep their data in FOLDER, until the block ends.

    Yields the settings of a site that uses them, as environment variables. The tables are migrated,
    and static files are collected and compressed, as in production.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    FOLDER.chmod(0o711)  # Postgres may run as another user.
    with ExitStack() as cleanup:
        postgres = prepare_postgres(FOLDER / "postgres", durable=False)
        valkey = prepare_valkey(FOLDER / "valkey")
        for server in (postgres, valkey):
            cleanup.enter_context(running_process(server.process))
        site = LocalSite(state=FOLDER, port=0, database_url=postgres.url, redis_url=valkey.url)
        outer = {**os.environ, "STATIC_COMPRESSED": "true"}
        settings = site_settings(site, outer) | {"LOG_LEVEL": "ERROR"}
        for command in (MIGRATE, COLLECT_STATIC):
            subprocess.run(
                here(command),
                cwd=PROJECT,
                env={**os.environ, **settings},
                stdout=subprocess.DEVNULL,
                check=True,
            )
        yield settings


@contextmanager
def serving(*, workers: int) -> Iterator[BenchServer]:
    """Run the web server until the block ends: `workers` processes in the current environment."""
    port = free_port()
    command = (*serve_web(host=HOST, port=port), "--workers", str(workers))
    web = SiteProcess(
        name="web", command=here(command), is_ready=lambda: answers_ok(port, "/healthz")
    )
    with running_process(web) as process:
        yield BenchServer(port, psutil.Process(process.pid))
