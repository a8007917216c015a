"""Test the launcher as a user runs it: `make up`, open the page, Ctrl-C."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_web.local.probes import answers_ok
from swarm_web.local.site import locked_state
from tests.local.launcher import LaunchedSite, launched_site, plain_environment, skip_wheel_build
from tests.local.processes import processes_inside
from tests.processes import PROJECT, eventually

pytestmark = pytest.mark.swarm

STOPS_WITHIN_S = 10.0


def await_ready(site: LaunchedSite) -> None:
    eventually(lambda: answers_ok(site.port, "/readyz"), within_s=30, what="/readyz returns 200")


def test_site_starts_with_its_own_servers_and_leaves_no_processes(tmp_path: Path) -> None:
    state = tmp_path / "state"
    skip_wheel_build(state)
    with launched_site(state) as site:
        assert answers_ok(site.port, "/healthz")
        await_ready(site)
        assert answers_ok(site.port, "/")
        site.launcher.process.send_signal(signal.SIGINT)
        assert site.launcher.process.wait(timeout=STOPS_WITHIN_S) == 0
    assert not processes_inside(state)
    assert not answers_ok(site.port, "/healthz")
    # Every process keeps the lock until it ends.
    with locked_state(state, timeout_s=0):
        pass


def test_two_web_processes_listen_on_two_ports(tmp_path: Path) -> None:
    state = tmp_path / "state"
    skip_wheel_build(state)
    with launched_site(state, web_processes=2) as site:
        await_ready(site)
        assert answers_ok(site.port + 1, "/healthz")
        assert f"More web processes listen on ports {site.port + 1}" in site.console()


@pytest.fixture(scope="module")
def site_on_named_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedSite]:
    """A site on the databases that the environment names."""
    state = tmp_path_factory.mktemp("named") / "state"
    # Not the Redis database of tests that run at the same time.
    redis_url = os.environ["REDIS_URL"].removesuffix("/0") + "/5"
    named = {"DATABASE_URL": os.environ["DATABASE_URL"], "REDIS_URL": redis_url}
    with launched_site(state, environment=plain_environment() | named) as site:
        yield site


def test_servers_named_in_the_environment_are_used(
    site_on_named_servers: LaunchedSite,
) -> None:
    await_ready(site_on_named_servers)
    assert not (site_on_named_servers.state / "postgres").exists()
    assert not (site_on_named_servers.state / "valkey").exists()


def test_pycosat_can_be_installed_from_the_site_without_a_compiler(
    site_on_named_servers: LaunchedSite, tmp_path: Path
) -> None:
    site = site_on_named_servers
    # The launcher builds wheels last, and writes the stamp afterwards.
    eventually((site.state / "dist.stamp").exists, within_s=60, what="the wheels are built")
    target, no_programs = tmp_path / "target", tmp_path / "bin"
    no_programs.mkdir()
    install = [sys.executable, "-m", "pip", "--quiet", "--no-cache-dir", "install", "--no-deps"]
    index = ["--target", str(target), "--index-url", f"{site.url}/simple/"]
    subprocess.run(
        [*install, *index, "pycosat==0.6.6"],
        env=os.environ | {"PATH": str(no_programs)},
        check=True,
    )
    assert [path.name for path in target.glob("pycosat.*")] == ["pycosat.py"]


@pytest.fixture(scope="module")
def created_node(site_on_named_servers: LaunchedSite) -> subprocess.CompletedProcess[str]:
    """The result of a command that registers a node and reports each module that it imports."""
    state = site_on_named_servers.state
    command = (sys.executable, "-m", "swarm_web.local", "manage", "--state-dir", str(state))
    return subprocess.run(
        (*command, "create_node", "--name", "visitor"),
        cwd=PROJECT,
        env=plain_environment() | {"PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        check=True,
    )


def test_manage_command_works_on_the_running_site(
    created_node: subprocess.CompletedProcess[str],
) -> None:
    assert created_node.stdout.startswith("visitor ")


def test_command_does_not_import_scipy_stats(
    created_node: subprocess.CompletedProcess[str],
) -> None:
    """Its import takes most of a second, and only rare calculations need it."""
    modules = {line.rpartition("|")[2].strip() for line in created_node.stderr.splitlines()}
    assert {"swarm_record.ranking", "swarm_web.dashboard.charts.arms"} <= modules
    assert "scipy.stats" not in modules
