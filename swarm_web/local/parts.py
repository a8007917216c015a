"""One process of the stack: what to run, when it is ready, how it ends."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swarm_web.local.accounts import Account

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def at_once() -> bool:
    """Be ready without a check."""
    return True


@dataclass(frozen=True, kw_only=True)
class Part:
    """A process that the supervisor starts, watches and stops.

    `is_ready` is asked again and again from a thread and answers within a second or two.
    `stop_signal` asks it to end; whatever of its process group is left `stop_within_s` seconds
    later gets `kill_signal`.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path | None = None
    account: Account = field(default_factory=Account)
    is_ready: Callable[[], bool] = at_once
    ready_within_s: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 3.0
    kill_signal: signal.Signals = signal.SIGKILL

    @property
    def argv(self) -> tuple[str, ...]:
        """The command with what its account puts before it."""
        return (*self.account.prefix, *self.command)


def spawn_options(part: Part, *, keep_open: Sequence[int] = ()) -> dict[str, Any]:
    """Return the `subprocess` options that a part is started with.

    Each part leads a process group of its own, so that Ctrl-C in the terminal reaches only the
    launcher, and it is told to stop when the launcher dies. `keep_open` are inherited files.
    """
    user, group = part.account.owner or (None, None)
    return {
        "stdin": subprocess.DEVNULL,
        "cwd": part.folder,
        "env": part.environment,
        "user": user,
        "group": group,
        "extra_groups": [] if part.account.owner else None,
        "process_group": 0,
        "pass_fds": keep_open,
        "preexec_fn": _end_with_parent(part.stop_signal),
    }


def _end_with_parent(stop_signal: signal.Signals) -> Callable[[], None] | None:
    """Return what a child runs before its program, so that no launcher's death orphans it.

    Only Linux has PR_SET_PDEATHSIG (prctl(2)); elsewhere a killed launcher leaves its parts.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    launcher = os.getpid()

    def ask_the_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, stop_signal)
        if os.getppid() != launcher:
            os._exit(1)  # The launcher died before the kernel was asked.

    return ask_the_kernel
