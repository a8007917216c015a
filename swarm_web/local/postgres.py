"""Postgres of this machine's own: loopback only, behind a password, never as root."""

import shutil
import signal
import subprocess
from pathlib import Path

import psycopg

from swarm_web.local.accounts import Account, hand_over, require_reach, unprivileged_account
from swarm_web.local.binaries import find_postgres
from swarm_web.local.errors import LaunchError
from swarm_web.local.parts import Part
from swarm_web.local.ports import HOST, free_port
from swarm_web.local.servers import LocalServer
from swarm_web.local.state import keep_secret

DATABASE = "murmuration"  # the superuser's name too
_PROBE_TIMEOUT_S = 2  # psycopg's smallest
# For data that nobody will miss: the tests' databases. Autovacuum would take statistics of tables
# that are empty between two tests, and Postgres would then plan for empty tables.
_FORGETFUL = (
    *("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
    *("-c", "autovacuum=off"),
)


def prepare_postgres(
    folder: Path, *, account: Account | None = None, durable: bool = True
) -> LocalServer:
    """Create the database cluster in `folder` if there is none; return the server, not started.

    `account` is who runs it, by default whoever works on this machine. Not durable is faster and
    loses data when the machine stops.

    Raises LaunchError when no program is found or the cluster cannot be created.
    """
    account = account or unprivileged_account()
    binaries = find_postgres()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = keep_secret(folder / "password")
    hand_over(folder, account)
    if account.owner:
        require_reach(binaries / "postgres")
    data = folder / "data"
    if not data.exists():
        _create_cluster(binaries, folder, account)
    _forget_stale_pid(data / "postmaster.pid")
    port = free_port()
    url = f"postgres://{DATABASE}:{password}@{HOST}:{port}/{DATABASE}"
    command = (
        *(str(binaries / "postgres"), "-D", str(data), "-p", str(port)),
        *("-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories="),
        *("-c", "log_min_messages=warning", "-c", "log_checkpoints=off"),
        *(() if durable else _FORGETFUL),
    )
    part = Part(
        name="postgres",
        command=command,
        folder=folder,
        account=account,
        is_ready=lambda: _lets_in(url),
        # Fast shutdown: SIGTERM would wait for every client to leave. The immediate one, SIGQUIT,
        # still removes the shared memory, which SIGKILL would leave behind.
        stop_signal=signal.SIGINT,
        stop_within_s=2.0,
        kill_signal=signal.SIGQUIT,
    )
    return LocalServer(part=part, url=url)


def _create_cluster(binaries: Path, folder: Path, account: Account) -> None:
    """Create it beside its place and move it there, so that a broken one is never taken up."""
    unfinished = folder / "data.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    data = ("-D", str(unfinished))
    _run(
        *(str(binaries / "initdb"), *data, "--username", DATABASE, "--auth=scram-sha-256"),
        *("--pwfile", str(folder / "password"), "--encoding=UTF8", "--locale=C", "--no-sync"),
        folder=folder,
        account=account,
    )
    statement = f"CREATE DATABASE {DATABASE}\n"
    single_user = (str(binaries / "postgres"), "--single", *data, "postgres")
    _run(*single_user, folder=folder, account=account, text=statement)
    unfinished.rename(folder / "data")


def _run(*command: str, folder: Path, account: Account, text: str = "") -> None:
    user, group = account.owner or (None, None)
    result = subprocess.run(
        [*account.prefix, *command],
        cwd=folder,
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        user=user,
        group=group,
        extra_groups=[] if account.owner else None,
        check=False,
    )
    if result.returncode != 0:
        raise LaunchError(
            f"Postgres could not create its data folder in {folder} ({command[0]} ended with "
            f"status {result.returncode}). It said:\n{result.stdout.strip()}"
        )


def _forget_stale_pid(path: Path) -> None:
    """Remove what a killed Postgres left behind, when its number now belongs to another program.

    Postgres would take that program for its former self and refuse to start. It judges right
    in all other cases.
    """
    if not path.exists():
        return
    pid = path.read_text().partition("\n")[0]
    comm = Path("/proc", pid, "comm")
    if comm.exists() and comm.read_text() != "postgres\n":
        path.unlink()


def _lets_in(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=_PROBE_TIMEOUT_S).close()
    except psycopg.OperationalError:
        return False
    return True
