"""A service in a real systemd session: installed, killed, refused, removed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path

import pytest

from node_client.site import Site
from node_client.storage.state import StateDir
from swarm_protocol.messages import Hello
from tests.node_client.commands.service.session import missing_for_session, running_session
from tests.node_client.coordinator import TOKEN, Coordinator, running
from tests.node_client.fakes import toy_season

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        missing_for_session() != "", reason=missing_for_session() or "there is a session"
    ),
]

PATIENCE_S = 90
# A name that must not be read as a specifier, a variable or several words.
STATE = "100%h of $HOME"
REFUSAL = json.dumps({"code": "auth.invalid", "message": "Unknown.", "fix": "Ask for a new one."})


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of a user with a systemd session."""
    environment = os.environ | {
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / STATE),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
    with running_session(tmp_path, environment):
        wait_for(lambda: (tmp_path / "run" / "systemd" / "private").exists())
        yield environment


def wait_for(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def run(session: dict[str, str], *words: str) -> str:
    done = subprocess.run(words, env=session, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def service(session: dict[str, str], command: str, site: Site, *more: str) -> str:
    words = ["-m", "node_client", "service", command, site.base, *more]
    return run(session, sys.executable, *words)


def ask(session: dict[str, str], site: Site, name: str) -> str:
    """Return a property of the service."""
    unit = f"swarm-node@{site.folder}.service"
    return run(
        session, "systemctl", "--user", "show", "--value", f"--property={name}", unit
    ).strip()


def has_failed(session: dict[str, str], site: Site) -> bool:
    return ask(session, site, "ActiveState") == "failed"


async def test_service_restarts_after_a_kill_stays_down_if_refused_and_can_be_removed(
    session: dict[str, str], tmp_path: Path
) -> None:
    coordinator = Coordinator(season=toy_season())
    async with running(coordinator):
        site = coordinator.site

        async def property_of(name: str) -> str:
            return await asyncio.to_thread(ask, session, site, name)

        output = await asyncio.to_thread(service, session, "install", site, "--token", TOKEN)
        assert "Installed and started" in output
        await coordinator.wait_for(Hello, timeout_s=PATIENCE_S)
        [unit] = (tmp_path / "config" / "systemd" / "user").glob("*.service")
        assert TOKEN not in unit.read_text()
        state = StateDir(tmp_path / STATE / "swarm-node" / site.folder)
        assert state.load_for(site).token == TOKEN

        # After a kill it is restarted; after a refusal it is not.
        coordinator.denial = (HTTPStatus.FORBIDDEN, REFUSAL)
        os.kill(int(await property_of("MainPID")), signal.SIGKILL)
        failed = partial(has_failed, session, site)
        await asyncio.to_thread(wait_for, failed)
        assert (await property_of("ExecMainStatus"), await property_of("NRestarts")) == ("2", "1")

        assert "Removed" in await asyncio.to_thread(service, session, "uninstall", site)
        assert await property_of("LoadState") == "not-found"
        assert not unit.exists()
