"""A service installs the client that its coordinator asks for, or says why it did not."""

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


class Pip:
    """Downloads and installs nothing; notes what it was asked. `fails` names what it cannot do."""

    def __init__(self, *, version: str = "9.0.0", fails: str = "") -> None:
        self.asked: list[str] = []
        self._version = version
        self._fails = fails

    def __call__(self, words: Sequence[str]) -> str:
        text = " ".join(words)
        self.asked.append(text)
        if self._fails and self._fails in text:
            raise UpgradeFailedError("No matching distribution found")
        if "download" in words:
            folder = Path(words[words.index("--dest") + 1])
            (folder / "swarm_node.whl").touch()
        return f"swarm-node {self._version}\n"


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path)


def test_a_program_may_print_what_is_no_text() -> None:
    assert (
        run_python(["-c", "import os; os.write(1, b'pip \\xff')"])
        == "pip \N{REPLACEMENT CHARACTER}"
    )


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrading, "TIMEOUT_S", 0.2)
    with pytest.raises(UpgradeFailedError, match="longer than"):
        run_python(["-c", "import time; time.sleep(60)"])


def test_nothing_is_installed_that_nobody_asked_for(state: StateDir) -> None:
    pip = Pip()
    assert upgrade_if_requested(SITE, state, now=NOON, run=pip) is None
    assert pip.asked == []


def test_the_client_comes_from_the_site_and_what_it_needs_from_the_usual_index(
    state: StateDir,
) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    pip = Pip()
    said = upgrade_if_requested(SITE, state, now=NOON, run=pip)
    assert said == f"updated from {CLIENT_VERSION} to 9.0.0"
    _, download, install, _ = pip.asked
    assert f"--index-url {SITE.base}/simple/ --no-deps --only-binary :all:" in download
    assert install.endswith("swarm_node.whl")
    assert "index" not in install


def test_an_update_is_tried_once(state: StateDir) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    upgrade_if_requested(SITE, state, now=NOON, run=Pip())
    assert upgrade_if_requested(SITE, state, now=NOON, run=Pip()) is None


@pytest.mark.parametrize(
    ("pip", "why"),
    [
        (Pip(fails="download"), "No matching distribution"),
        (Pip(fails="install"), "No matching distribution"),
        (Pip(version="8.0.0"), "the site offers 8.0.0, but requires 9.0.0"),
    ],
)
def test_a_failed_update_goes_on_with_the_old_client_and_says_so(
    state: StateDir, pip: Pip, why: str
) -> None:
    write_upgrade(state, UpgradeRequest("9.0.0"))
    said = upgrade_if_requested(SITE, state, now=NOON, run=pip)
    assert said is not None
    assert said.startswith(f"not updated, continuing with {CLIENT_VERSION}: ")
    assert why in said
    noted = read_upgrade(state)
    assert noted is not None
    assert why in noted.problem


@pytest.mark.parametrize(
    ("latest", "asks"),
    [
        (None, True),
        (UpgradeRequest("9.0.0"), True),
        (UpgradeRequest("9.0.0", tried_at=NOON), False),
        (UpgradeRequest("8.0.0", tried_at=NOON), True),
        (UpgradeRequest("9.0.0", tried_at=NOON - timedelta(days=1)), True),
    ],
)
def test_a_failed_upgrade_is_not_requested_again(latest: UpgradeRequest | None, asks: bool) -> None:
    assert should_request(latest, wanted="9.0.0", now=NOON) == asks
