"""Sites for nodes to join: processes on this test's database, or launched ones."""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from io import StringIO
from multiprocessing.process import BaseProcess
from pathlib import Path

import environ
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from swarm_web.core.store import sync_redis
from swarm_web.local import commands
from swarm_web.local.probes import HOST, answers_ok, free_port
from swarm_web.local.process import SiteProcess
from swarm_web.local.site import load_settings
from tests.local.launcher import LaunchedSite
from tests.node_client.forked import running_forked
from tests.processes import PROJECT, running


def site_environment(url: str) -> dict[str, str]:
    """Return the environment for processes of a site on this test's database."""
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


def project_part(
    name: str, command: tuple[str, ...], environment: Mapping[str, str]
) -> SiteProcess:
    """Return a process that runs one of the project's commands."""
    return SiteProcess(
        name=name, command=commands.here(command), environment=environment, folder=PROJECT
    )


@contextmanager
def running_site(folder: Path, **settings: str) -> Iterator[str]:
    """Run web, worker and beat; yield the URL of the site when it answers."""
    port = free_port()
    url = f"http://{HOST}:{port}"
    environment = site_environment(url) | settings
    web = project_part("web", commands.serve_web(host=HOST, port=port), environment)
    parts = (
        project_part("worker", commands.WORKER, environment),
        project_part("beat", commands.run_beat(), environment),
        replace(web, is_ready=lambda: answers_ok(port, "/healthz")),
    )
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(running(part, log=folder / f"{part.name}.log"))
        yield url


def join(name: str, arm: str, *, site: str, folder: Path) -> AbstractContextManager[BaseProcess]:
    """Register a node, and run it in a fork of a process that has imported torch."""
    token_file = folder / f"{name}.token"
    call_command("create_node", name=name, arm=arm, token_file=token_file, stdout=StringIO())
    command = commands.join_swarm(
        url=site, token_file=str(token_file), model="tiny", arm=arm, state=str(folder / name)
    )
    return running_forked("node_client", *command[1:], log=folder / f"{name}.log")


@contextmanager
def operating(site: LaunchedSite, blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let this process's models and doorbells use the servers of a launched site.

    So a test can act like an operator in the admin, without a process for each step.
    """
    there = load_settings(site.state)
    database = connections.databases["default"]
    own = {name: database[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    target = environ.Env.db_url_config(there["DATABASE_URL"])
    with blocker.unblock(), override_settings(REDIS_URL=there["REDIS_URL"]):
        connection.close()
        sync_redis.cache_clear()
        database.update({name: target[name] for name in own})
        try:
            yield
        finally:
            connection.close()
            sync_redis.cache_clear()
            database.update(own)
