"""Runs a node as a launch agent of macOS (launchd.plist(5))."""

import os
import plistlib
from pathlib import Path

from node_client.commands.service.unit import ServiceUnit, call, run_attached

LOG = "service.log"


def describe(plan: ServiceUnit) -> str:
    """Return the property list of a service, as XML.

    launchd restarts a program after every exit status but 0. A node that the coordinator refuses
    must not be restarted, so the command has `--wait-when-refused`: the node waits and does not
    exit.
    """
    log = str(plan.state / LOG)
    agent = {
        "Label": plan.name,
        "ProgramArguments": [*plan.command, "--wait-when-refused"],
        "WorkingDirectory": str(plan.state),
        "EnvironmentVariables": {"PYTHONUNBUFFERED": "1"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ExitTimeOut": 300,
        "ProcessType": "Background",
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return plistlib.dumps(agent).decode()


def agent_file(plan: ServiceUnit) -> Path:
    """Return the path of a service's property list."""
    return Path.home() / "Library" / "LaunchAgents" / f"{plan.name}.plist"


def install(plan: ServiceUnit) -> None:
    """Write, load and start the launch agent of a service; restart it if it is running.

    Raises NodeError when launchctl fails, OSError when the file cannot be written.
    """
    file = agent_file(plan)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(describe(plan), encoding="utf-8")
    call(["launchctl", "bootout", _target(plan)], check=False)
    call(["launchctl", "bootstrap", _domain(), str(file)])


def uninstall(plan: ServiceUnit) -> bool:
    """Stop the launch agent and remove its property list; return whether there was one.

    Raises OSError when the file cannot be removed.
    """
    file = agent_file(plan)
    if not file.exists():
        return False
    call(["launchctl", "bootout", _target(plan)], check=False)
    file.unlink()
    return True


def show_status(plan: ServiceUnit) -> None:
    """Show launchd's status of the service."""
    run_attached(["launchctl", "print", _target(plan)])


def show_logs(plan: ServiceUnit, *, follow: bool) -> None:
    """Show the last 200 lines of the service's output; with `follow` also new ones."""
    run_attached(["tail", "-n", "200", *(["-f"] if follow else []), str(plan.state / LOG)])


def describe_lingering() -> str:
    """Return a sentence that says when the service runs.

    launchd ends agents at logout, so the service runs only while the user is logged in.
    """
    return "It runs while you are logged in."


def _domain() -> str:
    uid: int = getattr(os, "getuid")()  # noqa: B009 - the client's other parts run without it too
    return f"gui/{uid}"


def _target(plan: ServiceUnit) -> str:
    return f"{_domain()}/{plan.name}"
