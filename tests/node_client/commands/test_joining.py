"""What a person who approves a code sees, and how the token is stored."""

import io
from pathlib import Path

import pytest
import segno
from rich.console import Console
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands.joining import render_code, render_qr, save_token
from node_client.commands.problems import FAILED
from node_client.errors import INTERRUPTED, SettingsError
from node_client.settings.config import choose
from node_client.site import parse_site
from node_client.storage.state import NodeRecord, StateDir
from node_client.swarm.device_flow import DeviceFlow
from swarm_protocol.joining import DeviceCode, DeviceToken

CODE = DeviceCode(
    device_code="the-secret",
    user_code="BCDF-GHJK",
    verification_uri="https://swarm.example.org/device/",
    verification_uri_complete="https://swarm.example.org/device/?code=BCDF-GHJK",
    expires_in=900,
    interval=2,
)


SITE = parse_site("https://swarm.example.org")


def screen(*, terminal: bool = True, width: int = 80, encoding: str = "utf-8") -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=file, force_terminal=terminal, width=width)


@pytest.mark.parametrize("terminal", [True, False])
def test_code_and_address_are_shown_without_the_secret(terminal: bool) -> None:
    shown = render_code(CODE, console=screen(terminal=terminal)).plain
    assert "BCDF-GHJK" in shown
    assert "https://swarm.example.org/device/" in shown
    assert "valid for 15 minutes" in shown
    assert "the-secret" not in shown


@pytest.mark.parametrize(
    "console",
    [screen(terminal=False), screen(width=20), screen(encoding="ascii")],
    ids=["log", "narrow", "without blocks"],
)
def test_no_qr_code_is_drawn_if_it_would_be_unreadable(console: Console) -> None:
    shown = render_code(CODE, console=console).plain
    assert "█" not in shown
    assert "Scan" not in shown


def test_qr_code_fits_on_a_small_terminal() -> None:
    lines = render_code(CODE, console=screen()).plain.splitlines()
    assert any("█" in line for line in lines)
    assert len(lines) <= 24
    assert max(map(len, lines)) < 80


def test_qr_code_contains_the_whole_address() -> None:
    halves = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    drawn = []
    for line in render_qr(CODE.verification_uri_complete).plain.splitlines():
        drawn += [list(row) for row in zip(*(halves[character] for character in line), strict=True)]
    made = segno.make_qr(CODE.verification_uri_complete, error="l").matrix_iter(border=2)
    assert drawn[: len(drawn[0])] == [list(row) for row in made]


def test_token_that_cannot_be_saved_is_reported_without_showing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(state: StateDir, remembered: NodeRecord) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StateDir, "save", fail)
    choices = choose(SITE, flags={"state_dir": str(tmp_path)}, environment={})
    with pytest.raises(SettingsError, match="No space left") as problem:
        save_token(choices, "swarm_secret", node="heron")
    assert "swarm_secret" not in f"{problem.value.message} {problem.value.fix}"


def test_ctrl_c_ends_the_wait_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(flow: DeviceFlow, **_: object) -> DeviceCode:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeviceFlow, "request_code", interrupt)
    result = CliRunner().invoke(app, ["login", SITE.base, "--state-dir", str(tmp_path)])
    assert result.exit_code == INTERRUPTED
    assert result.output == "\nInterrupted.\n"


@pytest.mark.parametrize("command", ["login", "logout"])
def test_only_token_of_a_node_without_an_account_is_not_deleted(
    tmp_path: Path, command: str
) -> None:
    state = StateDir(tmp_path)
    known = NodeRecord(url=SITE.base, token="swarm_t", node="heron", anonymous=True)
    state.save(known)
    result = CliRunner().invoke(app, [command, SITE.base, "--state-dir", str(tmp_path)])
    assert result.exit_code == FAILED
    assert f"swarm-node claim {SITE.base}" in result.output
    assert state.load() == known


@pytest.mark.parametrize("address", ["http://swarm.example.org", "https://other.example.org"])
@pytest.mark.parametrize("token", [(), ("--token", "swarm_new")])
def test_token_of_a_node_without_an_account_is_not_replaced_for_another_address(
    tmp_path: Path, address: str, token: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    state = StateDir(tmp_path)
    known = NodeRecord(url=SITE.base, token="swarm_t", node="heron", anonymous=True)
    state.save(known)
    words = ["service", "install", address, "--state-dir", str(tmp_path), *token]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == FAILED
    assert f"swarm-node claim {SITE.base}" in result.output
    assert state.load() == known


def test_node_without_an_account_can_be_abandoned_with_force(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.save(NodeRecord(url=SITE.base, token="swarm_t", node="heron", anonymous=True))
    result = CliRunner().invoke(app, ["logout", SITE.base, "--force", "--state-dir", str(tmp_path)])
    assert result.exit_code == 0
    assert not state.load().token


def test_claimed_node_is_no_longer_anonymous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateDir(tmp_path)
    state.save(NodeRecord(url=SITE.base, token="swarm_t", node="heron", anonymous=True))
    monkeypatch.setattr(DeviceFlow, "request_code", lambda flow, **_: CODE)
    monkeypatch.setattr(
        DeviceFlow, "await_token", lambda flow, code: DeviceToken(access_token="", node="heron")
    )
    result = CliRunner().invoke(app, ["claim", SITE.base, "--state-dir", str(tmp_path)])
    assert result.exit_code == 0
    assert state.load() == NodeRecord(url=SITE.base, token="swarm_t", node="heron")
