"""A node as a launch agent of macOS (launchd.plist(5))."""

import os
import plistlib
from pathlib import Path

from node_client.commands.service.calling import call, told
from node_client.commands.service.plan import Plan

LOG = "service.log"


def describe(plan: Plan) -> str:
    """Return the property list of a service.

    launchd starts again after every exit but 0 and knows no exception, so that a refused node
    waits instead of ending.
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


def agent_file(plan: Plan) -> Path:
    """Return where the user's agents are, and the one of a service among them."""
    return Path.home() / "Library" / "LaunchAgents" / f"{plan.name}.plist"


def install(plan: Plan) -> None:
    """Write, load and start the agent; one that runs is started anew. Raises NodeError."""
    file = agent_file(plan)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(describe(plan), encoding="utf-8")
    call(["launchctl", "bootout", _target(plan)], must=False)
    call(["launchctl", "bootstrap", _domain(), str(file)])


def uninstall(plan: Plan) -> bool:
    """Stop and remove the agent; return whether there was one. Raises NodeError."""
    file = agent_file(plan)
    if not file.exists():
        return False
    call(["launchctl", "bootout", _target(plan)], must=False)
    file.unlink()
    return True


def show_status(plan: Plan) -> None:
    """Let launchd say how the service is."""
    told(["launchctl", "print", _target(plan)])


def show_logs(plan: Plan, *, follow: bool) -> None:
    """Show what the service printed."""
    told(["tail", "-n", "200", *(["-f"] if follow else []), str(plan.state / LOG)])


def describe_lingering() -> str:
    """Say when an agent runs: nothing keeps it after its user logs out."""
    return "It runs while you are logged in."


def _domain() -> str:
    uid: int = getattr(os, "getuid")()  # noqa: B009 - the client's other parts run without it too
    return f"gui/{uid}"


def _target(plan: Plan) -> str:
    return f"{_domain()}/{plan.name}"
