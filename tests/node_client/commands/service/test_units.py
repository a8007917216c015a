"""The service definitions for systemd and launchd."""

import plistlib
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands.problems import FAILED
from node_client.commands.service import launchd, systemd
from node_client.commands.service.unit import ServiceUnit
from node_client.errors import SettingsError
from node_client.site import Site

VERIFY = shutil.which("systemd-analyze")
# systemd before 254 warns about each of these, and ignores it.
NEWER = ("RestartSteps", "RestartMaxDelaySec")
PLAN = ServiceUnit(
    site=Site("https://swarm.example.org"), python=Path(sys.executable), state=Path("/s")
)
AWKWARD = 'with space, %h 100%, $HOME, ${HOME}, "quotes" and \\ back'


def test_service_is_named_after_its_coordinator() -> None:
    assert PLAN.name == "swarm-node@swarm.example.org"
    assert replace(PLAN, site=Site("http://[::1]:8000")).name == "swarm-node@_1_8000"


@pytest.mark.skipif(VERIFY is None, reason="there is no systemd-analyze here")
@pytest.mark.parametrize("name", ["state", AWKWARD])
def test_systemd_accepts_the_unit(tmp_path: Path, name: str) -> None:
    state = tmp_path / name
    state.mkdir()
    file = tmp_path / f"{PLAN.name}.service"
    file.write_text(systemd.describe(replace(PLAN, state=state, auto_update=True)))
    assert VERIFY is not None
    done = subprocess.run(
        [VERIFY, "--user", "--man=no", "verify", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    complaints = [line for line in done.stderr.splitlines() if file.name in line]
    assert [line for line in complaints if not any(name in line for name in NEWER)] == []
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(VERIFY is None, reason="there is no systemd-analyze here")
def test_systemd_refuses_an_invalid_unit(tmp_path: Path) -> None:
    file = tmp_path / f"{PLAN.name}.service"
    file.write_text(systemd.describe(PLAN).replace("on-failure", "sometimes"))
    assert VERIFY is not None
    done = subprocess.run(
        [VERIFY, "--user", "--man=no", "verify", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert "sometimes" in done.stderr


def test_refused_node_is_not_restarted() -> None:
    lines = systemd.describe(PLAN).splitlines()
    for line in ("Restart=on-failure", "RestartPreventExitStatus=2", "RestartForceExitStatus=75"):
        assert line in lines


def test_path_with_a_line_break_is_refused() -> None:
    with pytest.raises(SettingsError, match="not allowed in a systemd unit"):
        systemd.describe(replace(PLAN, state=Path("/a\nExecStartPre=/bin/evil")))


def test_launch_agent_runs_the_same_command_and_waits_when_refused() -> None:
    plan = replace(PLAN, state=Path("/Users/me") / AWKWARD)
    agent = plistlib.loads(launchd.describe(plan).encode())
    assert agent["ProgramArguments"] == [*plan.command, "--wait-when-refused"]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["WorkingDirectory"] == str(plan.state)


@pytest.mark.skipif(sys.platform != "linux", reason="prints a unit of systemd")
def test_print_shows_the_unit_without_a_token_and_installs_nothing(tmp_path: Path) -> None:
    url = "https://swarm.example.org"
    arguments = ["service", "install", url, "--print", "--state-dir", str(tmp_path / "state")]
    result = CliRunner().invoke(
        app, [*arguments, "--token", "secret-token"], env={"XDG_CONFIG_HOME": str(tmp_path)}
    )
    assert result.exit_code == 0, result.output
    assert f'"service" "run" "{url}"' in result.output
    assert "secret-token" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_missing_service_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["service", "uninstall", "https://swarm.example.org"])
    assert (result.exit_code, "There is no service" in result.output) == (1, True)


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is on Linux only")
def test_nothing_is_installed_without_a_systemd_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    words = ["service", "install", "https://swarm.example.org", "--token", "t"]
    result = CliRunner().invoke(app, [*words, "--state-dir", str(tmp_path / "state")])
    assert result.exit_code == FAILED
    assert "--print` shows an example" in result.output
    assert not (tmp_path / "config").exists()


def test_service_whose_file_cannot_be_written_is_reported_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "Library").write_text("")
    words = ["service", "install", PLAN.site.base, "--token", "t"]
    result = CliRunner().invoke(app, [*words, "--state-dir", str(tmp_path / "state")])
    assert result.exit_code == FAILED
    assert str(tmp_path / "Library") in result.output
    assert "run this again" in result.output


def test_logs_of_a_launch_agent_are_read_from_its_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    (tmp_path / launchd.LOG).write_text("step 1\n")
    words = ["service", "logs", PLAN.site.base, "--state-dir", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert capfd.readouterr().out == "step 1\n"
