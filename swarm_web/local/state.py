"""The folder that keeps everything of one site: databases, secrets, nodes, built files."""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swarm_web.local.errors import LaunchError

_POLL_S = 0.05


def keep_secret(path: Path) -> str:
    """Return the secret kept at `path`, made on the first call; nobody else may read it."""
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        unfinished.rename(path)
    return path.read_text()


@contextmanager
def locked_state(folder: Path, *, patience_s: float = 15.0) -> Iterator[int]:
    """Own the folder for as long as this process or one of its parts lives.

    Yields the lock file's descriptor. Parts inherit it, so when a launcher is killed the lock
    holds until the last of them has ended, and the next start waits for that.

    Raises LaunchError when another launcher uses the folder, or when parts of a former one still
    run after `patience_s` seconds.
    """
    # Others may pass (Postgres may run as another user) but not look around.
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    path = folder / "launcher.pid"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(descriptor, path, patience_s)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not _try_lock(descriptor):
        holder = path.read_text().strip()
        if holder and _is_alive(int(holder)):
            raise LaunchError(
                f"{path.parent} is in use by the launcher with process id {holder}. Stop that one "
                f"(`kill -INT {holder}`) or choose another --state-dir."
            )
        if time.monotonic() > deadline:
            raise LaunchError(
                f"Processes of a former start still use {path.parent} and do not end. Find them "
                f"with `fuser -v {path}`, stop them and start again."
            )
        time.sleep(_POLL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # Another user's: alive.
    return True
