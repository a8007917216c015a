"""Outside the verifier, the client uses nothing that only Unix has."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import node_client
import swarm_protocol
import swarm_tasks
from node_client.commands.doctor import check_verifier
from node_client.errors import NodeError
from node_client.runtime.startup import check_system
from swarm_tasks import process

# These need a system that can sandbox a process, and report where there is none.
VERIFIER = ("process.py", "step_board.py", "child", "gate")
MODULES = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog", "crypt"}
ATTRIBUTES = {
    "os": {
        *("chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid"),
        *("getloadavg", "getpgid", "getuid", "kill", "killpg", "lchown", "mkfifo", "nice"),
        *("posix_fadvise", "sched_getaffinity", "sched_setaffinity", "set_blocking", "setsid"),
        *("setuid", "statvfs", "sysconf", "uname", "wait", "wait3", "memfd_create", "O_CLOEXEC"),
        *("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC"),
    },
    "signal": {
        *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP"),
        *("SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "alarm", "pause", "setitimer"),
        *("pthread_sigmask", "sigwait"),
    },
    "select": {"poll", "epoll", "kqueue"},
    "socket": {"AF_UNIX", "socketpair"},
    "time": {"tzset", "clock_gettime"},
}
METHODS = {"add_signal_handler", "create_unix_server", "create_unix_connection"}
ARGUMENTS = {"pass_fds", "preexec_fn", "start_new_session", "process_group"}


def client_sources() -> list[Path]:
    folders = [Path(package.__path__[0]) for package in (node_client, swarm_protocol, swarm_tasks)]
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if not (folder.name == "swarm_tasks" and path.relative_to(folder).parts[0] in VERIFIER)
    ]


def find_unix_only(source: str) -> list[str]:
    """Return the names in a module's source that only Unix has."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if name.name in MODULES]
            case ast.ImportFrom(module=module, names=names):
                found += [module] if module in MODULES else []
                known = ATTRIBUTES.get(module or "", set())
                found += [f"{module}.{name.name}" for name in names if name.name in known]
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                found += [f"{module}.{name}"] if name in ATTRIBUTES.get(module, set()) else []
                found += [name] if name in METHODS else []
            case ast.keyword(arg=str(name)) if name in ARGUMENTS:
                found.append(name)
    return found


@pytest.mark.slow
def test_client_uses_no_unix_only_names() -> None:
    sources = client_sources()
    assert len(sources) > 80
    found = {str(path): find_unix_only(path.read_text()) for path in sources}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import fcntl",
        "from os import getuid",
        "import os\nos.killpg(1, 9)",
        "import signal\nsignal.signal(signal.SIGUSR1, print)",
        "loop.add_signal_handler(2, print)",
        "Popen([], pass_fds=[3])",
    ],
)
def test_unix_only_name_is_found(source: str) -> None:
    assert find_unix_only(source)


@pytest.mark.slow
def test_every_module_can_be_imported_without_unix_only_names() -> None:
    script = """
import asyncio, importlib, multiprocessing, os, pkgutil, signal, select, subprocess, sys, tempfile
import filelock, httpx, psutil, rich.live, rich.logging, torch, transformers, typer, websockets
from tests.node_client.test_portability import ATTRIBUTES, MODULES
import node_client, swarm_protocol
kept = {name for name in sys.modules if not name.startswith(("node_client", "swarm_"))}
for name in set(sys.modules) - kept:
    del sys.modules[name]
for name in MODULES:
    sys.modules[name] = None
for module, names in ATTRIBUTES.items():
    for name in names:
        vars(sys.modules[module]).pop(name, None)
for package in ("node_client", "swarm_protocol"):
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            print(module.name)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "node_client.runtime.run" in ran.stdout
    assert "node_client.storage.checkpoint" in ran.stdout


def test_unsupported_verifier_is_reported_by_training_and_doctor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "SUPPORTED", False)
    with pytest.raises(NodeError) as problem:
        check_system("swarm")
    assert "WSL" in problem.value.fix
    check_system("base")  # only answers the judge, and scores nothing itself
    check = check_verifier()
    assert (check.level, "WSL" in check.remedy) == ("fail", True)
