"""Runs a node as a user unit of systemd (systemd.unit(5), systemd.service(5))."""

import getpass
import os
import shutil
from pathlib import Path

from node_client.commands.problems import REFUSED, UPGRADE_DUE
from node_client.commands.service.unit import ServiceUnit, call, run_attached
from node_client.errors import SettingsError

UNIT = """\
[Unit]
Description={description}
Documentation={site}/join/
# The pauses below are enough, without a counter that has to be reset.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
WorkingDirectory={folder}
Environment=PYTHONUNBUFFERED=1
# Restart after a failure: first after 5 s, finally after 5 minutes (before systemd 254 after 5 s).
Restart=on-failure
RestartSec=5s
RestartSteps=6
RestartMaxDelaySec=5min
# Refused: the token or the client is not accepted, so a restart would not help.
RestartPreventExitStatus={refused}
# The next start installs a newer client.
RestartForceExitStatus={upgrade}
SuccessExitStatus={upgrade}
# SIGTERM for the node only: it finishes its step, saves, and ends its child processes.
KillMode=mixed
TimeoutStopSec=5min
Nice=10
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""


def describe(plan: ServiceUnit) -> str:
    """Return the text of a service's unit file.

    Raises SettingsError for a path with characters that a unit cannot contain.
    """
    if any(not word.isprintable() for word in (*plan.command, str(plan.state))):
        raise SettingsError(
            "A path of this node contains a character that is not allowed in a systemd unit.",
            fix="Choose a --state-dir and a virtual environment without such names.",
        )
    return UNIT.format(
        description=_escape_specifiers(f"swarm-node at {plan.site.base}"),
        site=_escape_specifiers(plan.site.base),
        command=" ".join(map(_quote, plan.command)),
        folder=_escape_specifiers(str(plan.state)),
        refused=REFUSED,
        upgrade=UPGRADE_DUE,
    )


def unit_file(plan: ServiceUnit) -> Path:
    """Return the path of a service's unit file."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "systemd" / "user" / f"{plan.name}.service"


def install(plan: ServiceUnit) -> None:
    """Write, enable and start the unit of a service; restart it if it is running.

    Raises the errors of `describe`, NodeError when systemctl fails, and OSError when the file
    cannot be written.
    """
    text, file = describe(plan), unit_file(plan)
    _systemctl("show-environment")  # Fails without a session, before anything is written.
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    _systemctl("daemon-reload")
    _systemctl("enable", file.name)
    _systemctl("restart", file.name)


def uninstall(plan: ServiceUnit) -> bool:
    """Stop, disable and remove the unit; return whether there was one.

    Raises NodeError when systemctl fails, OSError when the file cannot be removed.
    """
    file = unit_file(plan)
    if not file.exists():
        return False
    _systemctl("disable", "--now", file.name)
    file.unlink()
    _systemctl("daemon-reload")
    return True


def show_status(plan: ServiceUnit) -> None:
    """Show systemd's status of the service."""
    run_attached(["systemctl", "--user", "--no-pager", "status", unit_file(plan).name])


def show_logs(plan: ServiceUnit, *, follow: bool) -> None:
    """Show the output of the service from the journal; with `follow` also new lines."""
    arguments = ["journalctl", "--user", "--unit", unit_file(plan).name, "--pager-end"]
    run_attached([*arguments, "--follow"] if follow else arguments)


def describe_lingering() -> str:
    """Return a sentence that says how to keep the service running after logout.

    The text is empty if the service keeps running after logout already, or if the system has no
    loginctl.
    """
    if shutil.which("loginctl") is None:
        return ""
    user = getpass.getuser()
    answer = call(["loginctl", "show-user", user, "--property=Linger"], check=False)
    if "Linger=yes" in answer:
        return ""
    return (
        "It ends when you log out, and starts when you log in. To keep it running:"
        f" sudo loginctl enable-linger {user}"
    )


def _systemctl(*arguments: str) -> None:
    call(["systemctl", "--user", *arguments])


def _escape_specifiers(text: str) -> str:
    """Escape `%`, which begins a specifier in a unit."""
    return text.replace("%", "%%")


def _quote(word: str) -> str:
    """Quote one word of a unit's command line, so that systemd replaces nothing in it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{_escape_specifiers(escaped)}"'
