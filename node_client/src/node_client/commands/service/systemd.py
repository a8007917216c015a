"""A node as a user unit of systemd (systemd.unit(5), systemd.service(5))."""

import getpass
import os
import shutil
from pathlib import Path

from node_client.commands.problems import REFUSED, UPGRADE_DUE
from node_client.commands.service.calling import call, told
from node_client.commands.service.plan import Plan
from node_client.errors import SettingsError

UNIT = """\
[Unit]
Description={description}
Documentation={site}/join/
# The pauses below are enough; nobody should have to reset a counter.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
WorkingDirectory={folder}
Environment=PYTHONUNBUFFERED=1
# Again after a failure: at first after 5 s, at last after 5 minutes (before systemd 254 after 5 s).
Restart=on-failure
RestartSec=5s
RestartSteps=6
RestartMaxDelaySec=5min
# Refused: the token or the client will not do, and trying again would not help.
RestartPreventExitStatus={refused}
# A newer client is to be installed, which the next start does.
RestartForceExitStatus={upgrade}
SuccessExitStatus={upgrade}
# SIGTERM for the node alone: it finishes its step, saves, and ends its helpers itself.
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


def describe(plan: Plan) -> str:
    """Return the unit of a service. Raises SettingsError for a path that no unit can hold."""
    if any(not word.isprintable() for word in (*plan.command, str(plan.state))):
        raise SettingsError(
            "A path of this node holds a character that no unit of systemd can hold.",
            fix="Choose a --state-dir and a virtual environment without such names.",
        )
    return UNIT.format(
        description=_specify(f"swarm-node at {plan.site.base}"),
        site=_specify(plan.site.base),
        command=" ".join(map(_quote, plan.command)),
        folder=_specify(str(plan.state)),
        refused=REFUSED,
        upgrade=UPGRADE_DUE,
    )


def unit_file(plan: Plan) -> Path:
    """Return where the user's units are, and the one of a service among them."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "systemd" / "user" / f"{plan.name}.service"


def install(plan: Plan) -> None:
    """Write, enable and start the unit; one that runs is started anew. Raises NodeError."""
    text, file = describe(plan), unit_file(plan)
    _systemctl("show-environment")  # Without a session nothing shall be left behind.
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    _systemctl("daemon-reload")
    _systemctl("enable", file.name)
    _systemctl("restart", file.name)


def uninstall(plan: Plan) -> bool:
    """Stop, disable and remove the unit; return whether there was one. Raises NodeError."""
    file = unit_file(plan)
    if not file.exists():
        return False
    _systemctl("disable", "--now", file.name)
    file.unlink()
    _systemctl("daemon-reload")
    return True


def show_status(plan: Plan) -> None:
    """Let systemd say how the service is."""
    told(["systemctl", "--user", "--no-pager", "status", unit_file(plan).name])


def show_logs(plan: Plan, *, follow: bool) -> None:
    """Let the journal show what the service printed."""
    words = ["journalctl", "--user", "--unit", unit_file(plan).name, "--pager-end"]
    told([*words, "--follow"] if follow else words)


def describe_lingering() -> str:
    """Say what keeps the service running after its user logs out, or nothing where it does."""
    if shutil.which("loginctl") is None:
        return ""
    user = getpass.getuser()
    answer = call(["loginctl", "show-user", user, "--property=Linger"], must=False)
    if "Linger=yes" in answer:
        return ""
    return (
        "It ends when you log out, and starts when you log in. To keep it running:"
        f" sudo loginctl enable-linger {user}"
    )


def _systemctl(*words: str) -> None:
    call(["systemctl", "--user", *words])


def _specify(text: str) -> str:
    """Return a text in which systemd finds no specifier."""
    return text.replace("%", "%%")


def _quote(word: str) -> str:
    """Return a word of a command line as systemd reads it: no variable, no specifier, one word."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{_specify(escaped)}"'
