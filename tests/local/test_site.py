"""The launcher as a person uses it: `make up`, a look at the page, Ctrl-C."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from swarm_web.local.ports import free_port
from swarm_web.local.probes import answers_ok
from swarm_web.local.state import locked_state
from tests.local.processes import processes_inside, wait_until

pytestmark = pytest.mark.swarm

ROOT = Path(__file__).parents[2]
# What tests/services.py sets for this process; a person's shell has none of it.
OURS = ("DEBUG", "SECRET_KEY", "DATABASE_URL", "REDIS_URL", "STATIC_ROOT", "DIST_DIR")
STOPS_WITHIN_S = 10.0


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OURS}


@contextmanager
def site_is_up(
    state: Path, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run `up` until it has printed its address; yields the launcher and the port."""
    port = free_port()
    command = (sys.executable, "-m", "swarm_web.local", "up", "--port", str(port))
    with subprocess.Popen(
        (*command, "--state-dir", str(state)),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as launcher:
        assert launcher.stdout is not None
        lines = []
        for line in launcher.stdout:
            lines.append(line)
            if f"is at http://127.0.0.1:{port}" in line:
                break
        else:
            pytest.fail("the site did not start:\n" + "".join(lines))
        try:
            yield launcher, port
        finally:
            launcher.send_signal(signal.SIGINT)
            launcher.stdout.read()


def test_a_site_starts_with_its_own_servers_and_leaves_nothing(tmp_path: Path) -> None:
    with site_is_up(tmp_path, plain_environment()) as (launcher, port):
        assert answers_ok(port, "/healthz")
        assert wait_until(lambda: answers_ok(port, "/readyz"), within_s=30)
        assert answers_ok(port, "/")
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(timeout=STOPS_WITHIN_S) == 0
    assert not processes_inside(tmp_path)
    assert not answers_ok(port, "/healthz")
    # Every part holds the lock for as long as it lives.
    with locked_state(tmp_path, patience_s=0):
        pass


@pytest.fixture(scope="module")
def site_on_named_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Run a site on the databases that the environment names; yields its folder and port."""
    state = tmp_path_factory.mktemp("state")
    # Another of Redis's databases than that of the tests beside this one.
    redis_url = os.environ["REDIS_URL"].removesuffix("/0") + "/5"
    named = {"DATABASE_URL": os.environ["DATABASE_URL"], "REDIS_URL": redis_url}
    with site_is_up(state, plain_environment() | named) as (_, port):
        yield state, port


def test_servers_named_by_the_environment_are_used_instead(
    site_on_named_servers: tuple[Path, int],
) -> None:
    state, port = site_on_named_servers
    assert wait_until(lambda: answers_ok(port, "/readyz"), within_s=30)
    assert not (state / "postgres").exists()
    assert not (state / "valkey").exists()


def test_manage_works_on_the_running_site(site_on_named_servers: tuple[Path, int]) -> None:
    state, _ = site_on_named_servers
    command = (sys.executable, "-m", "swarm_web.local", "manage", "--state-dir", str(state))
    result = subprocess.run(
        (*command, "create_node", "--name", "visitor"),
        cwd=ROOT,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("visitor ")
