"""A service installs the client that its coordinator requires, or reports why it did not."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from node_client.commands.service import upgrading
from node_client.commands.service.upgrading import (
    UpgradeFailedError,
    run_python,
    upgrade_if_requested,
)
from node_client.site import Site
from node_client.storage.state import StateDir
from node_client.storage.upgrades import (
    UpgradeRequest,
    read_upgrade,
    should_request,
    write_upgrade,
)
from swarm_protocol.version import CLIENT_VERSION

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SITE = Site("https://swarm.example.org")


class FakePip:
    """Downloads and installs nothing, but records its calls. `fails` is the command that fails."""

    def __init__(self, *, version: str = "9.0.0", fails: str = "") -> None:
        self.calls: list[str] = []
        self._version = version
        self._fails = fails

    def __call__(self, words: Sequence[str]) -> str:
        text = " ".join(words)
        self.calls.append(text)
        if self._fails and self._fails in text:
            raise UpgradeFailedError("No matching distribution found")
        if "download" in words:
            folder = Path(words[words.index("--dest") + 1])
            (folder / f"swarm_node-{self._version}-py3-none-any.whl").touch()
        return f"swarm-node {self._version}\n"


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path)


def test_output_that_is_not_utf_8_is_accepted() -> None:
    assert (
        run_python(["-c", "import os; os.write(1, b'pip \\xff')"])
        == "pip \N{REPLACEMENT CHARACTER}"
    )


def test_slow_command_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrading, "TIMEOUT_S", 0.2)
    with pytest.raises(UpgradeFailedError, match="longer than"):
        run_python(["-c", "import time; time.sleep(60)"])


def test_nothing_is_installed_unless_requested(state: StateDir) -> None:
    pip = FakePip()
    assert upgrade_if_requested(SITE, state, now=NOON, run=pip) is None
    assert pip.calls == []


def test_client_comes_from_the_site_and_its_dependencies_from_the_default_index(
    state: StateDir,
) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    pip = FakePip()
    outcome = upgrade_if_requested(SITE, state, now=NOON, run=pip)
    assert outcome == f"updated from {CLIENT_VERSION} to 9.0.0"
    _, download, install, _ = pip.calls
    assert f"--index-url {SITE.base}/simple/ --no-deps --only-binary :all:" in download
    assert install.endswith("swarm_node-9.0.0-py3-none-any.whl")
    assert "index" not in install


def test_update_is_tried_once(state: StateDir) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    upgrade_if_requested(SITE, state, now=NOON, run=FakePip())
    assert upgrade_if_requested(SITE, state, now=NOON, run=FakePip()) is None


@pytest.mark.parametrize(
    ("pip", "why"),
    [
        (FakePip(fails="download"), "No matching distribution"),
        (FakePip(fails="install"), "No matching distribution"),
        (FakePip(version="8.0.0"), "the site offers 8.0.0, but requires 9.0.0"),
    ],
)
def test_failed_update_continues_with_the_old_client_and_reports_the_reason(
    state: StateDir, pip: FakePip, why: str
) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    outcome = upgrade_if_requested(SITE, state, now=NOON, run=pip)
    assert outcome is not None
    assert outcome.startswith(f"not updated, continuing with {CLIENT_VERSION}: ")
    assert why in outcome
    noted = read_upgrade(state)
    assert noted is not None
    assert why in noted.problem


def test_client_older_than_required_is_not_installed(state: StateDir) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    pip = FakePip(version="8.0.0")
    upgrade_if_requested(SITE, state, now=NOON, run=pip)
    assert "download" in pip.calls[-1]


@pytest.mark.parametrize(
    ("latest", "requests"),
    [
        (None, True),
        (UpgradeRequest("9.0.0"), True),
        (UpgradeRequest("9.0.0", tried_at=NOON), False),
        (UpgradeRequest("8.0.0", tried_at=NOON), True),
        (UpgradeRequest("9.0.0", tried_at=NOON - timedelta(days=1)), True),
    ],
)
def test_recently_failed_upgrade_is_not_requested_again(
    latest: UpgradeRequest | None, requests: bool
) -> None:
    assert should_request(latest, wanted="9.0.0", now=NOON) == requests
