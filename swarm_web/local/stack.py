"""Starts the whole site on one machine, one step after another."""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from swarm_web.local import LaunchError, commands
from swarm_web.local.console import Console
from swarm_web.local.databases import LocalServer, prepare_postgres, prepare_valkey
from swarm_web.local.demo import BASE_NODE, DemoNode, node_process, registration, token_folder
from swarm_web.local.probes import HOST, answers_ok, has_judged, require_free
from swarm_web.local.process import SiteProcess
from swarm_web.local.site import (
    LocalSite,
    fingerprint,
    is_current,
    save_settings,
    server_environment,
)
from swarm_web.local.supervisor import Supervisor

PROJECT = Path(__file__).resolve().parent.parent.parent
_SITE_NAME = "Murmuration"  # the default in swarm_web.settings
# uvicorn gives open sockets 3 s (commands.serve_web). With the limits of nodes and databases, the
# whole site stops within 10 s. The demo also ends its untrained node first, and stops within 14 s.
_SITE_STOP_TIMEOUT_S = 3.2
_POLL_S = 1.0


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """What `Stack` starts.

    `state` is the folder for the databases and all other data, `outer` the launcher's environment.
    The web processes listen on `port` and the ports after it.
    """

    state: Path
    port: int
    web_processes: int = 1
    nodes: Sequence[DemoNode]
    outer: Mapping[str, str]


class Stack:
    """One site whose processes run under one supervisor; `run()` starts it."""

    def __init__(self, plan: LaunchPlan, *, console: Console, supervisor: Supervisor) -> None:
        self._plan = plan
        self._console = console
        self._supervisor = supervisor

    async def run(self) -> None:
        """Start the site and keep it running until cancelled.

        1. Start Postgres and Valkey, each unless the environment has an address to use instead.
        2. Create the tables, collect the static files and compile the translations.
        3. Start web, worker and beat, and create the season. From here on the site answers.
        4. Start the demo's nodes, and build the client's wheel for the package index.
        5. With demo nodes, wait until the first round has closed, and start an untrained node. An
           earlier start would delay this round.

        Raises LaunchError when a step fails, except for the wheel, which the site can do without.
        """
        ports = range(self._plan.port, self._plan.port + self._plan.web_processes)
        for port in ports:
            require_free(port)
        with self._console.stage("Starting Postgres and Valkey"):
            site = await self._start_databases()
        environment = server_environment(site, self._plan.outer)
        with self._console.stage("Preparing tables and static files"):
            await asyncio.gather(
                self._run("migrate", commands.MIGRATE, environment),
                self._collect_static(site, environment),
                self._run("messages", commands.COMPILE_MESSAGES, environment),
            )
        await asyncio.gather(
            self._serve(site, environment, ports),
            self._run("season", commands.CREATE_DEMO_SEASON, environment),
        )
        if nodes := self._plan.nodes:
            await self._start_nodes(site, environment, nodes, what=f"{len(nodes)} nodes")
        await self._build_wheel(site)
        if nodes:
            await self._await_first_scores(site)
            what = f"untrained nodes for comparison ({BASE_NODE.name})"
            await self._start_nodes(site, environment, [BASE_NODE], what=what)
        await asyncio.Event().wait()

    async def _start_databases(self) -> LocalSite:
        database_url, redis_url = await asyncio.gather(
            self._start_database("DATABASE_URL", "postgres", prepare_postgres),
            self._start_database("REDIS_URL", "valkey", prepare_valkey),
        )
        site = LocalSite(
            state=self._plan.state,
            port=self._plan.port,
            database_url=database_url,
            redis_url=redis_url,
        )
        save_settings(site, self._plan.outer)
        return site

    async def _start_database(
        self, variable: str, name: str, prepare: Callable[[Path], LocalServer]
    ) -> str:
        """Return a database's address; start a server unless the environment has an address.

        `variable` is the name of the environment variable. If it is not set, `prepare` creates the
        server in the subfolder `name` of the state folder.
        """
        if url := self._plan.outer.get(variable):
            return url
        server = await asyncio.to_thread(prepare, self._plan.state / name)
        await self._supervisor.start(server.process)
        return server.url

    async def _run(
        self, name: str, command: tuple[str, ...], environment: Mapping[str, str]
    ) -> None:
        """Run a command of the site and wait for its end. Raises LaunchError if it fails."""
        await self._supervisor.run(_server_process(name, command, environment))

    async def _collect_static(self, site: LocalSite, environment: Mapping[str, str]) -> None:
        """Collect the static files, unless `fingerprint_static` is the same as the last time."""
        site.static.mkdir(exist_ok=True)
        stamp = site.state / "static.stamp"
        now = fingerprint_static(environment)
        if not is_current(stamp, now):
            await self._run("static", commands.COLLECT_STATIC, environment)
            stamp.write_text(now)

    async def _serve(self, site: LocalSite, environment: Mapping[str, str], ports: range) -> None:
        """Start web, worker and beat, and print the address once the site answers."""
        with self._console.stage("Starting web, worker and beat"):
            await self._supervisor.start(*_site_processes(environment, ports))
        name = self._plan.outer.get("SITE_NAME", _SITE_NAME)
        if others := ", ".join(map(str, ports[1:])):
            self._console.write(f"More web processes listen on ports {others}")
        self._console.write(f"{name} is at {site.url}  (Ctrl-C stops it)")

    async def _start_nodes(
        self,
        site: LocalSite,
        environment: Mapping[str, str],
        nodes: Sequence[DemoNode],
        *,
        what: str,
    ) -> None:
        token_folder(site).mkdir(mode=0o700, exist_ok=True)
        with self._console.stage(f"Registering and starting {what}"):
            await asyncio.gather(
                *(self._run(node.name, registration(site, node), environment) for node in nodes)
            )
            await self._supervisor.start(
                *(node_process(site, node, outer=self._plan.outer) for node in nodes)
            )

    async def _await_first_scores(self, site: LocalSite) -> None:
        port = site.port
        while not await asyncio.to_thread(has_judged, port):  # noqa: ASYNC110  # asked by HTTP
            await asyncio.sleep(_POLL_S)

    async def _build_wheel(self, site: LocalSite) -> None:
        """Build the client's wheel for the package index (/simple/) unless the wheel is up to date.

        A failure is only printed, because the site works without the wheel.
        """
        site.wheels.mkdir(exist_ok=True)
        client = PROJECT / "node_client"
        stamp = site.state / "dist.stamp"
        now = fingerprint([client])
        if is_current(stamp, now):
            return
        command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
        # pycosat: a replacement without C code, so that participants need no compiler.
        sources = (str(client), str(client / "pycosat"))
        process = SiteProcess(
            name="wheel",
            command=(*command, "--wheel-dir", str(site.wheels), *sources),
            stop_signal=signal.SIGINT,  # pip then removes its temporary folders
        )
        try:
            with self._console.stage("Building the client's wheel for /simple/"):
                await self._supervisor.run(process)
        except LaunchError as error:
            self._console.write(f"/simple/ has no client: {error}")
        else:
            stamp.write_text(now)


def fingerprint_static(environment: Mapping[str, str]) -> str:
    """Return a hash of everything that decides which static files are collected, and where.

    That is `static/`, three settings, and the versions of the packages that contain or copy static
    files.
    """
    packages = ("django", "django-allauth", "django-ninja", "whitenoise")
    # DEBUG writes no manifest, and without a manifest no page renders when DEBUG is off.
    variables = ("DEBUG", "STATIC_ROOT", "STATIC_COMPRESSED")
    values = (environment.get(name, "") for name in variables)
    return fingerprint([PROJECT / "static"], *map(version, packages), *values)


def _server_process(
    name: str, command: tuple[str, ...], environment: Mapping[str, str]
) -> SiteProcess:
    return SiteProcess(
        name=name,
        command=commands.here(command),
        environment=environment,
        folder=PROJECT,
        stop_timeout_s=_SITE_STOP_TIMEOUT_S,
    )


def _site_processes(environment: Mapping[str, str], ports: range) -> list[SiteProcess]:
    """Return the web processes (one per port), the worker and beat.

    Only the web processes have a readiness check (`is_ready`).
    """
    return [
        *(_web_process(environment, port, first=ports[0]) for port in ports),
        _server_process("worker", commands.WORKER, environment),
        _server_process("beat", commands.run_beat(), environment),
    ]


def _web_process(environment: Mapping[str, str], port: int, *, first: int) -> SiteProcess:
    name = "web" if port == first else f"web{port - first + 1}"
    process = _server_process(name, commands.serve_web(host=HOST, port=port), environment)
    return replace(process, is_ready=lambda: answers_ok(port, "/healthz"))
