"""Applies the sandbox of a verifier child, then tries what it forbids; run by tests.

`python -m tests.tasks.probing_child FILE` prints as JSON the measures that took effect and, for
each attempt, its error; null if it succeeded. FILE lies outside what a child may read. With a
second argument, Landlock is not applied, as on a kernel without it.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import sys
import threading
from collections.abc import Callable

from swarm_tasks.child import sandbox

# Numbers of system calls without a Python function, on x86-64 and on arm64.
_NUMBERS = {
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "ioprio_set": (251, 30),
    "sched_setattr": (314, 274),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "fchmodat2": (452, 452),
    "getxattrat": (464, 464),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "kcmp": (312, 272),
    "openat2": (437, 437),
    "reboot": (169, 142),
}
_AT_FDCWD = -100
_F_SETOWN_EX = 15
# More than the limit on the process's own memory.
_MUCH = 1800 << 20
_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Make a system call. Raises OSError."""
    number = _NUMBERS[name][platform.machine() == "aarch64"]
    if _libc.syscall(number, *arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def share_much_memory() -> None:
    """Touch more shared memory than the limit allows."""
    with mmap.mmap(-1, _MUCH) as shared:
        for place in range(0, _MUCH, mmap.PAGESIZE):
            shared[place] = 1


def create_file(path: str) -> None:
    """Create a file and remove it again. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    os.unlink(path)


def refuse_landlock(paths: object) -> None:
    """Stand in for Landlock on a kernel without it. Raises OSError."""
    raise OSError("this kernel has no Landlock")


def attempts(secret: str, library: str) -> dict[str, Callable[[], object]]:
    """Return the attempts; `library` is a readable file, which they do not change."""
    read = os.stat(library)
    name = ctypes.create_string_buffer(b"probe")
    path = ctypes.create_string_buffer(secret.encode())
    siginfo = ctypes.create_string_buffer(128)
    return {
        "socket": lambda: socket.socket(),
        "unix socket": lambda: socket.socket(socket.AF_UNIX),
        "fork": lambda: os.fork() or os._exit(0),
        "thread": threading.Thread(target=int).start,
        "program": lambda: os.execv("/bin/true", ["true"]),
        "kill": lambda: os.kill(os.getppid(), 0),
        "own signal": lambda: os.kill(os.getpid(), signal.SIGCONT),
        "queued signal": lambda: call("rt_sigqueueinfo", os.getppid(), 0, siginfo),
        "queued signal of a thread": lambda: call(
            "rt_tgsigqueueinfo", os.getppid(), os.getppid(), 0, siginfo
        ),
        "signal of a pipe": lambda: fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid()),
        "signal of a pipe to a thread": lambda: fcntl.fcntl(1, _F_SETOWN_EX, bytes(8)),
        "compare": lambda: call("kcmp", os.getppid(), os.getpid(), 0, 0, 0),
        "reboot": lambda: call("reboot", 0, 0, 0, None),
        "truncate": lambda: os.truncate(secret, 0),
        "truncate by opening": lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC),
        "new open call": lambda: call("openat2", _AT_FDCWD, path, bytes(24), 24),
        "passwd": lambda: open("/etc/passwd"),
        "parent": lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
        "secret": lambda: open(secret),
        "write": lambda: create_file(f"{secret}.new"),
        "list": lambda: os.listdir(os.path.dirname(secret)),
        "shm file": lambda: create_file("/dev/shm/probe"),
        "memory": lambda: bytearray(2 << 30),
        "shared memory": share_much_memory,
        "chmod": lambda: os.chmod(secret, 0o777),
        "fchmod": lambda: os.fchmod(0, 0o777),
        "fchmodat": lambda: call("fchmodat2", _AT_FDCWD, path, 0o777, 0),
        "chown": lambda: os.chown(secret, os.getuid(), os.getgid()),
        "lchown": lambda: os.lchown(secret, os.getuid(), os.getgid()),
        "utime": lambda: os.utime(secret, (0, 0)),
        "utime of a library": lambda: os.utime(library, ns=(read.st_atime_ns, read.st_mtime_ns)),
        "set attribute": lambda: os.setxattr(secret, "user.probe", b"x"),
        "read attribute": lambda: os.getxattr(secret, "user.probe"),
        "list attributes": lambda: os.listxattr(secret),
        "remove attribute": lambda: os.removexattr(secret, "user.probe"),
        "new attribute call": lambda: call("getxattrat", _AT_FDCWD, path, 0, name, None, 0),
        "watch": lambda: call("inotify_init1", 0),
        "watch all": lambda: call("fanotify_init", 0, 0),
        "affinity": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "scheduler": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
        "scheduler attributes": lambda: call("sched_setattr", 0, None, 0),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, 19),
        "disk priority": lambda: call("ioprio_set", 1, 0, 0),
        "System V memory": lambda: call("shmget", 0, 4096, 0o1600),
        "attach memory": lambda: call("shmat", 0, None, 0),
        "System V semaphore": lambda: call("semget", 0, 1, 0o1600),
        "System V queue": lambda: call("msgget", 0, 0o1600),
        "POSIX queue": lambda: call("mq_open", name, os.O_CREAT | os.O_RDWR, 0o600, None),
        "anonymous file": lambda: call("memfd_create", name, 0),
        "secret memory": lambda: call("memfd_secret", 0),
        "standard library": lambda: open(library),
    }


def try_it(action: Callable[[], object]) -> str | None:
    """Return the name of the exception that the attempt raised; of an OSError, its errno."""
    try:
        action()
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, type(problem).__name__)
    except (RuntimeError, MemoryError) as problem:
        return type(problem).__name__
    return None


def main() -> None:
    """Apply the sandbox to this process and try everything."""
    secret, *without_landlock = sys.argv[1:]
    if without_landlock:
        sandbox.allow_reading_only = refuse_landlock  # type: ignore[attr-defined]
    took_hold = sandbox.apply_sandbox()
    refused = {
        name: try_it(action) for name, action in attempts(secret, str(json.__file__)).items()
    }
    print(json.dumps({"took_hold": sorted(took_hold), "refused": refused}))  # noqa: T201


if __name__ == "__main__":
    main()
