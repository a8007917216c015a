"""One process of the site: what to run, as which user, and how to start, follow and end it."""

import asyncio
import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swarm_web.local import LaunchError
from swarm_web.local.console import Console

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# Any number but 0 would do: it is visible only inside the namespace.
_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
# Seconds that a process has to end after `follow` was cancelled.
_GRACE_S = 1.0


@dataclass(frozen=True)
class RunAs:
    """The user that a process runs as.

    `prefix` is put before the process's command, to run it in a user namespace. `owner` has the ids
    of the user and group to switch to, or is None for no switch. At most one of the two fields is
    set.
    """

    prefix: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def unprivileged_user() -> RunAs:
    """Return how to run a process that refuses to run as root, such as Postgres.

    If the caller is not root, the process runs as the caller's user. If the caller is root, the
    process runs in a user namespace, in which root has another user id. Outside the namespace, its
    files still belong to root. Where user namespaces are refused, the process runs as the account
    `nobody`, which every system has. None of this creates an account or changes permissions above
    the data folder.
    """
    if os.geteuid() != 0:
        return RunAs()
    return RunAs(prefix=_NAMESPACE) if _namespaces_work() else nobody()


def nobody() -> RunAs:
    """Return how root runs a process as the account `nobody`, without a user namespace."""
    entry = pwd.getpwnam("nobody")
    return RunAs(owner=(entry.pw_uid, entry.pw_gid))


def hand_over(folder: Path, run_as: RunAs) -> None:
    """Give `folder` and its content to the user of `run_as`, unless that user owns `folder`.

    Parent folders are not changed. If `run_as` switches to another user, raises LaunchError unless
    every user may enter all folders above `folder`.
    """
    user, group = run_as.owner or (os.geteuid(), os.getegid())
    if folder.stat().st_uid != user:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, group, follow_symlinks=False)
    if run_as.owner:
        require_reach(folder)


def require_reach(path: Path) -> None:
    """Raise LaunchError unless every user may enter all folders above `path`."""
    for parent in path.resolve().parents:
        if not parent.stat().st_mode & 0o001:
            raise LaunchError(
                f"Postgres refuses to run as root, and the user it would run as cannot enter "
                f"{parent}. Start as an ordinary user, choose a --state-dir that every user can "
                f"reach, or allow user namespaces (`unshare --user true` must work)."
            )


def _namespaces_work() -> bool:
    """Return whether user namespaces work. Tries one, because systems refuse them in many ways."""
    if shutil.which(_NAMESPACE[0]) is None:
        return False
    return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def always_ready() -> bool:
    """Return True, for a process whose readiness is not checked."""
    return True


@dataclass(frozen=True, kw_only=True)
class SiteProcess:
    """A process that the supervisor starts, watches and stops.

    `is_ready` is called repeatedly in a thread and must return within a second or two.
    `stop_signal` asks the process to end. If it has not ended `stop_timeout_s` seconds later, its
    process group gets `kill_signal`. When the process has ended, the rest of its group gets
    SIGKILL.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path | None = None
    run_as: RunAs = field(default_factory=RunAs)
    is_ready: Callable[[], bool] = always_ready
    ready_timeout_s: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 3.0
    kill_signal: signal.Signals = signal.SIGKILL

    @property
    def argv(self) -> tuple[str, ...]:
        """The command with `run_as.prefix` before it."""
        return (*self.run_as.prefix, *self.command)


@dataclass(frozen=True)
class StartedProcess:
    """A process that was started, with its `output` (stdout and stderr).

    `output` ends when the process and all processes that inherited its stdout or stderr have ended.
    """

    site_process: SiteProcess
    process: Process
    output: asyncio.StreamReader

    def request_stop(self) -> None:
        """Send the stop signal, if the process is still running."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(self.site_process.stop_signal)

    def kill(self, kill_signal: signal.Signals = signal.SIGKILL) -> None:
        """Send `kill_signal` to the process and all others in its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, kill_signal)

    async def follow(self, console: Console) -> int:
        """Print the output until the process has ended, and return its exit status.

        Before this returns, the rest of the process group is killed. If this coroutine is
        cancelled, the process is asked to stop, and is killed if it has not ended a second later.
        """
        following = asyncio.create_task(console.follow(self.site_process.name, self.output))
        try:
            return await self.process.wait()
        except asyncio.CancelledError:
            self.request_stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), _GRACE_S)
            raise
        finally:
            self.kill()
            await self.process.wait()
            await following


async def spawn(site_process: SiteProcess, *, keep_open: Sequence[int] = ()) -> StartedProcess:
    """Start a process. Raises LaunchError when it cannot be started.

    The output goes to a pipe that is created here: with asyncio's own pipe, `process.wait()` would
    also wait for every grandchild that holds the pipe open.
    """
    read_end, write_end = os.pipe()
    options = spawn_options(site_process, keep_open=keep_open)
    try:
        process = await asyncio.create_subprocess_exec(
            *site_process.argv, stdout=write_end, stderr=STDOUT, **options
        )
    except OSError as error:
        os.close(read_end)
        raise LaunchError(f"{site_process.name} cannot be started: {error}.") from error
    finally:
        os.close(write_end)
    output = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(read_end, "rb")
    )
    return StartedProcess(site_process=site_process, process=process, output=output)


def spawn_options(site_process: SiteProcess, *, keep_open: Sequence[int] = ()) -> dict[str, Any]:
    """Return the `subprocess` options for a process.

    The process leads its own process group, so that Ctrl-C in the terminal reaches only the
    launcher. On Linux it gets its stop signal when the launcher dies. It inherits the descriptors
    `keep_open`.
    """
    owner = site_process.run_as.owner
    user, group = owner or (None, None)
    return {
        "stdin": subprocess.DEVNULL,
        "cwd": site_process.folder,
        "env": site_process.environment,
        "user": user,
        "group": group,
        "extra_groups": [] if owner else None,
        "process_group": 0,
        "pass_fds": keep_open,
        "preexec_fn": _end_with_parent(site_process.stop_signal),
    }


def _end_with_parent(stop_signal: signal.Signals) -> Callable[[], None] | None:
    """Return a `preexec_fn` that makes a child get `stop_signal` when the launcher dies.

    Only Linux has PR_SET_PDEATHSIG (prctl(2)). Elsewhere this returns None, and the processes of a
    killed launcher keep running.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    launcher = os.getpid()

    def request_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, stop_signal)
        if os.getppid() != launcher:
            os._exit(1)  # The launcher died before the request.

    return request_signal
