"""One local site: its state folder, and the environment variables of its processes.

In each function, the argument `outer` is the environment of the launcher.
"""

import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local import LaunchError
from swarm_web.local.probes import HOST

_POLL_S = 0.05
# Settings that demo nodes do not get, because a node processes completions of strangers.
_SERVER_SECRETS = (
    *("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"),
    *("EMAIL_URL", "GITHUB_CLIENT_SECRET"),
)
_SITE_FILE = "site.json"


@dataclass(frozen=True, kw_only=True)
class LocalSite:
    """State folder, web port and database addresses of one local site."""

    state: Path
    port: int
    database_url: str
    redis_url: str

    @property
    def url(self) -> str:
        """The address for browsers and nodes on this machine."""
        return f"http://{HOST}:{self.port}"

    @property
    def static(self) -> Path:
        """The folder of collected static files, unless STATIC_ROOT names another."""
        return self.state / "static"

    @property
    def wheels(self) -> Path:
        """The folder of the node client's wheel, which the site serves unless DIST_DIR is set."""
        return self.state / "dist"


def site_settings(site: LocalSite, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that configure a local site.

    Variables in `outer` override the defaults, with these exceptions: DJANGO_SETTINGS_MODULE is
    fixed, the databases' addresses are those of `site`, and ALLOWED_HOSTS also contains this
    machine's address, for health checks and demo nodes.
    """
    defaults = {
        "HTTPS": "false",
        "SECRET_KEY": keep_secret(site.state / "secret_key"),
        "SITE_URL": site.url,
        "STATIC_ROOT": str(site.static),
        # Compression takes half a minute and is useful on slow links only.
        "STATIC_COMPRESSED": "false",
        "DIST_DIR": str(site.wheels),
        # Only this machine can reach the site, so nodes need no account.
        "ANONYMOUS_JOIN": "true",
    }
    hosts = filter(None, [*outer.get("ALLOWED_HOSTS", "localhost").split(","), HOST])
    fixed = {
        "ALLOWED_HOSTS": ",".join(dict.fromkeys(hosts)),
        "DATABASE_URL": site.database_url,
        "REDIS_URL": site.redis_url,
        "DJANGO_SETTINGS_MODULE": "swarm_web.settings",
    }
    return {name: outer.get(name, value) for name, value in defaults.items()} | fixed


def server_environment(site: LocalSite, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the server's processes."""
    return {**outer, **site_settings(site, outer), "PYTHONUNBUFFERED": "1"}


def node_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """Return a demo node's environment: no secrets of the server, and only one torch thread.

    Several small models on one machine train faster with one core each.
    """
    kept = {name: value for name, value in outer.items() if name not in _SERVER_SECRETS}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def save_settings(site: LocalSite, outer: Mapping[str, str]) -> None:
    """Save the result of `site_settings` in a file that only this user can read.

    From this file, `python -m swarm_web.local manage` gets the settings of the running site.
    """
    path = site.state / _SITE_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)  # an existing file keeps its mode when it is opened
        json.dump(site_settings(site, outer), file)


def load_settings(state: Path) -> dict[str, str]:
    """Return the saved settings of the site in `state`. Raises LaunchError if there is no site."""
    try:
        settings: dict[str, str] = json.loads((state / _SITE_FILE).read_text())
    except FileNotFoundError as error:
        raise LaunchError(
            f"There is no site in {state}. Start one with `make up` and leave it running."
        ) from error
    return settings


def keep_secret(path: Path) -> str:
    """Return the secret in the file `path`.

    If the file is missing, it is created first, with a random secret and mode 0600.
    """
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        unfinished.rename(path)
    return path.read_text()


def fingerprint(folders: Iterable[Path], *extra: str) -> str:
    """Return a hash of `extra` and of the files below `folders`, in hex.

    The hash covers each file's path, size and modification time. Files in `__pycache__` are left
    out.
    """
    digest = hashlib.sha256(repr(extra).encode())
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                facts = path.stat()
                digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def is_current(stamp: Path, current: str) -> bool:
    """Return whether the file `stamp` contains the fingerprint `current`.

    A slow step writes the `fingerprint` of its input to this file. If the input still has the same
    fingerprint, the step need not run again.
    """
    return stamp.exists() and stamp.read_text() == current


@contextmanager
def locked_state(folder: Path, *, timeout_s: float = 15.0) -> Iterator[int]:
    """Lock the state folder while the block runs, and yield the lock file's descriptor.

    The site's processes inherit the descriptor, and the folder stays locked while one of them has
    it open. So if a launcher is killed, its folder is locked until the last of its processes has
    ended. The next launcher waits until then.

    Raises LaunchError if another launcher uses the folder, or if processes of an earlier launcher
    still run after `timeout_s` seconds.
    """
    # Other users may enter the folder, because Postgres may run as one of them, but not list it.
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    path = folder / "launcher.pid"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take_lock(descriptor, path, timeout_s)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _take_lock(descriptor: int, path: Path, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _try_lock(descriptor):
        holder = path.read_text().strip()
        if holder and _is_alive(int(holder)):
            raise LaunchError(
                f"{path.parent} is in use by the launcher with process id {holder}. Stop it "
                f"(`kill -INT {holder}`) or choose another --state-dir."
            )
        if time.monotonic() > deadline:
            raise LaunchError(
                f"Processes of an earlier start still use {path.parent} and do not end. Find them "
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
        pass  # A process of another user, so it is alive.
    return True
