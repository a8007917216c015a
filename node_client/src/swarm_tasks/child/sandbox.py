"""The rights that the verifier child gives up before it reads the first request.

A measure is one protection, such as `network`. `apply_sandbox` tries all measures and returns those
that succeeded, which shows how well the child is isolated. On a system that lacks a measure
(Landlock and seccomp need Linux) the child works without it.
"""

import ctypes
import resource
import sysconfig
from collections.abc import Callable
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from swarm_tasks.child.landlock import allow_reading_only
from swarm_tasks.child.seccomp import refuse_system_calls

_PR_SET_NO_NEW_PRIVS = 38
# The limit of the child's address space.
MEMORY_BYTES = 1 << 30
_OPEN_FILES = 32
_LIBRARY_PACKAGES = ("swarm_tasks", "swarm_protocol", "reasoning_gym")
_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/local/lib", "/etc/ld.so.cache")


class Measure(StrEnum):
    """A protection of the child."""

    RLIMITS = "rlimits"  # all of them: memory, core dumps, file size, open files, processes
    NO_NEW_PRIVS = "no_new_privs"  # set-user-id programs give no rights
    FILESYSTEM = "filesystem"  # reads Python and its libraries only, writes nothing
    NETWORK = "network"  # no socket of any kind
    PROCESSES = "processes"  # no new process or program, no signal to and no memory of others
    # No mode, owner, time, extended attribute of a file, no smaller size, no watch on it.
    ATTRIBUTES = "attributes"
    SHARED_MEMORY = "shared_memory"  # no memory, semaphore or queue that outlives the process
    SCHEDULING = "scheduling"  # no other priority, core or share of the disk


_BY_SECCOMP = (
    *(Measure.NETWORK, Measure.PROCESSES),
    *(Measure.ATTRIBUTES, Measure.SHARED_MEMORY, Measure.SCHEDULING),
)


def apply_sandbox() -> frozenset[Measure]:
    """Permanently give up what a verifier does not need; return the measures that succeeded.

    A measure that fails is skipped. The order matters: resource limits are set before seccomp
    forbids the system call for them, and file access and seccomp need no_new_privs.
    """
    took_hold: set[Measure] = set()
    steps: tuple[tuple[Callable[[], None], tuple[Measure, ...]], ...] = (
        (_limit_resources, (Measure.RLIMITS,)),
        (_refuse_new_privileges, (Measure.NO_NEW_PRIVS,)),
        (lambda: allow_reading_only(library_paths()), (Measure.FILESYSTEM,)),
        (refuse_system_calls, _BY_SECCOMP),
    )
    for step, measures in steps:
        try:
            step()
        except (OSError, ValueError, AttributeError):
            # AttributeError: a C library without prctl or syscall, as on macOS.
            continue
        took_hold.update(measures)
    return frozenset(took_hold)


def library_paths() -> list[Path]:
    """Return the paths of Python and of a verifier's libraries: all that the child may read."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {Path(path) for name in names if (path := sysconfig.get_path(name))}
    for package in _LIBRARY_PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.origin:
            paths.add(Path(spec.origin).parent)
    paths.update(Path(path) for path in _SYSTEM_LIBRARIES)
    return sorted(paths)


def _limit_resources() -> None:
    """Set every resource limit that the system accepts; raise OSError if it refused any."""
    refused: list[str] = []
    for name, value in (
        ("RLIMIT_AS", MEMORY_BYTES),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NOFILE", _OPEN_FILES),
        ("RLIMIT_NPROC", 0),
    ):
        try:
            _lower(getattr(resource, name), value)
        # AttributeError: a system that knows no such limit.
        except (OSError, ValueError, AttributeError):
            refused.append(name)
    if refused:
        raise OSError(f"refused: {', '.join(refused)}")


def _lower(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (soft, soft))


def _refuse_new_privileges() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS) was refused")
