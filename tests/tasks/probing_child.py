"""Applies the sandbox of a verifier child, then tries what it forbids; run by tests.

`python -m tests.tasks.probing_child FILE` prints as JSON the measures that took effect and, for
each attempt, its error; null if it succeeded. FILE lies outside what a child may read.
"""

import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import socket
import sys
import threading
from collections.abc import Callable

from swarm_tasks.child.sandbox import apply_sandbox

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
}
_AT_FDCWD = -100
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


def attempts(secret: str, library: str) -> dict[str, Callable[[], object]]:
    """Return the attempts; `library` is a readable file, which they do not change."""
    read = os.stat(library)
    name = ctypes.create_string_buffer(b"probe")
    path = ctypes.create_string_buffer(secret.encode())
    return {
        "socket": lambda: socket.socket(),
        "unix socket": lambda: socket.socket(socket.AF_UNIX),
        "fork": lambda: os.fork() or os._exit(0),
        "thread": threading.Thread(target=int).start,
        "program": lambda: os.execv("/bin/true", ["true"]),
        "kill": lambda: os.kill(os.getppid(), 0),
        "own signal": lambda: os.kill(os.getpid(), signal.SIGCONT),
        "passwd": lambda: open("/etc/passwd"),
        "parent": lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
        "secret": lambda: open(secret),
        "write": lambda: open(f"{secret}.new", "w"),
        "list": lambda: os.listdir(os.path.dirname(secret)),
        "shm file": lambda: open("/dev/shm/probe", "w"),
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
    secret = sys.argv[1]
    took_hold = apply_sandbox()
    refused = {
        name: try_it(action) for name, action in attempts(secret, str(json.__file__)).items()
    }
    print(json.dumps({"took_hold": sorted(took_hold), "refused": refused}))  # noqa: T201


if __name__ == "__main__":
    main()
