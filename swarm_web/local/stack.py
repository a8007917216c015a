"""The whole site on one machine, step by step."""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from swarm_web.local import commands
from swarm_web.local.console import Console
from swarm_web.local.demo import (
    DemoNode,
    node_part,
    plan_base_nodes,
    registration,
    token_folder,
)
from swarm_web.local.environment import Site, remember_site, server_environment
from swarm_web.local.errors import LaunchError
from swarm_web.local.parts import Part
from swarm_web.local.ports import HOST, require_free
from swarm_web.local.postgres import prepare_postgres
from swarm_web.local.probes import answers_ok, has_judged
from swarm_web.local.servers import LocalServer
from swarm_web.local.stamps import fingerprint, is_current
from swarm_web.local.supervisor import Supervisor
from swarm_web.local.valkey import prepare_valkey

PROJECT = Path(__file__).resolve().parent.parent.parent
_SITE_NAME = "Murmuration"  # as swarm_web.settings has it
# uvicorn gives open sockets 3 s of their own (commands.serve_web). With what nodes and databases
# may take, everything stops within 10 s.
_SITE_STOPS_WITHIN_S = 3.2
_POLL_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What somebody asked to be started, and the environment they asked it in.

    The web processes listen on `port` and those that follow it.
    """

    state: Path
    port: int
    web_processes: int = 1
    nodes: Sequence[DemoNode]
    outer: Mapping[str, str]


class Stack:
    """One site under one supervisor; `run()` has the order of things."""

    def __init__(self, plan: Plan, *, console: Console, supervisor: Supervisor) -> None:
        self._plan = plan
        self._console = console
        self._supervisor = supervisor

    async def run(self) -> None:
        """Start everything and keep it running until cancelled.

        1. Postgres and Valkey, each unless the environment names one.
        2. The tables, the static files and the compiled translations.
        3. Web, worker, beat and the season; from here on there is a page to look at.
        4. The demo's nodes, and the client's wheel for the package index.
        5. After the first judged round, which they would delay, the demo's untrained nodes.

        Raises LaunchError when a step fails.
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
        nodes, base_nodes = self._plan.nodes, plan_base_nodes(self._plan.nodes)
        if nodes:
            await self._start_nodes(site, environment, nodes, what=f"{len(nodes)} nodes")
        await self._build_wheel(site)
        if base_nodes:
            await self._await_first_scores(site)
            names = ", ".join(node.name for node in base_nodes)
            what = f"untrained nodes for comparison ({names})"
            await self._start_nodes(site, environment, base_nodes, what=what)
        await asyncio.Event().wait()

    async def _start_databases(self) -> Site:
        database_url, redis_url = await asyncio.gather(
            self._start_database("DATABASE_URL", "postgres", prepare_postgres),
            self._start_database("REDIS_URL", "valkey", prepare_valkey),
        )
        site = Site(
            state=self._plan.state,
            port=self._plan.port,
            database_url=database_url,
            redis_url=redis_url,
        )
        remember_site(site, self._plan.outer)
        return site

    async def _start_database(
        self, variable: str, name: str, prepare: Callable[[Path], LocalServer]
    ) -> str:
        """Return the address in the environment, or that of a server started here."""
        if url := self._plan.outer.get(variable):
            return url
        server = await asyncio.to_thread(prepare, self._plan.state / name)
        await self._supervisor.start(server.part)
        return server.url

    async def _run(
        self, name: str, command: tuple[str, ...], environment: Mapping[str, str]
    ) -> None:
        """Run one of the server's commands to its end."""
        await self._supervisor.run(_server_part(name, command, environment))

    async def _collect_static(self, site: Site, environment: Mapping[str, str]) -> None:
        """Collect and compress the static files when they are not those of the last start."""
        site.static.mkdir(exist_ok=True)
        stamp = site.state / "static.stamp"
        # With DEBUG no manifest is written, without which no page is shown when it is off.
        debug = environment.get("DEBUG", "")
        now = fingerprint([PROJECT / "static"], version("django"), version("whitenoise"), debug)
        if not is_current(stamp, now):
            await self._run("static", commands.COLLECT_STATIC, environment)
            stamp.write_text(now)

    async def _serve(self, site: Site, environment: Mapping[str, str], ports: range) -> None:
        """Start web, worker and beat, and say where the page is as soon as it answers."""
        with self._console.stage("Starting web, worker and beat"):
            await self._supervisor.start(*_site_parts(environment, ports))
        name = self._plan.outer.get("SITE_NAME", _SITE_NAME)
        if others := ", ".join(map(str, ports[1:])):
            self._console.say(f"More web processes are at the ports {others}")
        self._console.say(f"{name} is at {site.url}  (Ctrl-C stops everything)")

    async def _start_nodes(
        self, site: Site, environment: Mapping[str, str], nodes: Sequence[DemoNode], *, what: str
    ) -> None:
        token_folder(site).mkdir(mode=0o700, exist_ok=True)
        with self._console.stage(f"Registering and starting {what}"):
            await asyncio.gather(
                *(self._run(node.name, registration(site, node), environment) for node in nodes)
            )
            await self._supervisor.start(
                *(node_part(site, node, outer=self._plan.outer) for node in nodes)
            )

    async def _await_first_scores(self, site: Site) -> None:
        port = site.port
        while not await asyncio.to_thread(has_judged, port):  # noqa: ASYNC110  # asked by HTTP
            await asyncio.sleep(_POLL_S)

    async def _build_wheel(self, site: Site) -> None:
        """Build what /simple/ offers. The site works without it, so a failure is only reported."""
        site.wheels.mkdir(exist_ok=True)
        client = PROJECT / "node_client"
        stamp = site.state / "dist.stamp"
        now = fingerprint([client])
        if is_current(stamp, now):
            return
        command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
        # pycosat: a stand-in without C code, so that participants need no compiler.
        sources = (str(client), str(client / "pycosat"))
        part = Part(
            name="wheel",
            command=(*command, "--wheel-dir", str(site.wheels), *sources),
            stop_signal=signal.SIGINT,  # pip then removes its temporary folders
        )
        try:
            with self._console.stage("Building the client's wheel for /simple/"):
                await self._supervisor.run(part)
        except LaunchError as error:
            self._console.say(f"/simple/ offers no client: {error}")
        else:
            stamp.write_text(now)


def _server_part(name: str, command: tuple[str, ...], environment: Mapping[str, str]) -> Part:
    return Part(
        name=name,
        command=commands.here(command),
        environment=environment,
        folder=PROJECT,
        stop_within_s=_SITE_STOPS_WITHIN_S,
    )


def _site_parts(environment: Mapping[str, str], ports: range) -> list[Part]:
    """Return web, one for each port, worker and beat. The page does not wait for the last two."""
    return [
        *(_web_part(environment, port, first=ports[0]) for port in ports),
        _server_part("worker", commands.WORKER, environment),
        _server_part("beat", commands.run_beat(), environment),
    ]


def _web_part(environment: Mapping[str, str], port: int, *, first: int) -> Part:
    name = "web" if port == first else f"web{port - first + 1}"
    part = _server_part(name, commands.serve_web(host=HOST, port=port), environment)
    return replace(part, is_ready=lambda: answers_ok(port, "/healthz"))
