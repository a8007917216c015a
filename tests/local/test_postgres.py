"""Test the launcher's own Postgres, which changes nothing else on the machine."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from swarm_web.local import LaunchError
from swarm_web.local.databases import prepare_postgres
from swarm_web.local.process import RunAs, nobody
from tests.local.processes import (
    existing_shared_memory,
    listening_ports,
    processes_inside,
    shared_memory_of,
)
from tests.processes import eventually, running

pytestmark = pytest.mark.slow

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run as another account")


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    """A directory that only its owner can enter, inside another such directory."""
    folder = tmp_path / "home" / "state"
    folder.mkdir(parents=True)
    for each in (tmp_path / "home", folder):
        each.chmod(0o700)
    return folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="murmuration-open-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def modes_and_owners(folder: Path) -> list[tuple[Path, int, int, int]]:
    """Return mode and owner of `folder` and of every directory above it."""
    facts = [(path, path.stat()) for path in (folder, *folder.parents)]
    return [(path, stat.st_mode, stat.st_uid, stat.st_gid) for path, stat in facts]


def test_postgres_starts_in_a_private_directory_and_changes_no_accounts_or_modes(
    closed_folder: Path,
) -> None:
    accounts = Path("/etc/passwd").read_bytes(), Path("/etc/group").read_bytes()
    before = modes_and_owners(closed_folder)
    server = prepare_postgres(closed_folder / "postgres", durable=False)
    with running(server.process, log=closed_folder / "log"), psycopg.connect(server.url) as client:
        row = client.execute("SELECT current_database()").fetchone()
    assert row == ("murmuration",)
    assert modes_and_owners(closed_folder) == before
    assert (Path("/etc/passwd").read_bytes(), Path("/etc/group").read_bytes()) == accounts


@as_root
def test_postgres_runs_as_nobody_if_namespaces_are_unavailable(open_folder: Path) -> None:
    before = modes_and_owners(open_folder)
    try:
        server = prepare_postgres(open_folder / "postgres", run_as=nobody(), durable=False)
    except LaunchError as error:
        pytest.skip(f"the programs are in a closed folder: {error}")
    with running(server.process, log=open_folder / "log") as process:
        assert Path("/proc", str(process.pid)).stat().st_uid == nobody().owner[0]  # type: ignore[index]
    assert modes_and_owners(open_folder) == before


@as_root
def test_directory_unreachable_for_nobody_is_rejected_with_a_suggestion(
    closed_folder: Path,
) -> None:
    with pytest.raises(LaunchError, match=r"cannot enter .*/home/state.* choose a --state-dir"):
        prepare_postgres(closed_folder / "postgres", run_as=nobody(), durable=False)


def test_postgres_runs_as_the_current_user(closed_folder: Path) -> None:
    server = prepare_postgres(closed_folder / "postgres", durable=False)
    if os.geteuid() != 0:
        assert server.process.run_as == RunAs()
    with running(server.process, log=closed_folder / "log") as process:
        owners = {Path("/proc", str(process.pid)).stat().st_uid}
    assert owners == {os.geteuid()}


def test_wrong_password_is_rejected(tmp_path: Path) -> None:
    server = prepare_postgres(tmp_path / "postgres", durable=False)
    password = (tmp_path / "postgres" / "password").read_text()
    with (
        running(server.process, log=tmp_path / "log"),
        pytest.raises(psycopg.OperationalError, match="password authentication failed"),
    ):
        psycopg.connect(server.url.replace(password, "guess"))


def test_data_survives_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    first = prepare_postgres(folder)
    with running(first.process, log=tmp_path / "log"), psycopg.connect(first.url) as client:
        client.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    second = prepare_postgres(folder)
    with running(second.process, log=tmp_path / "log"), psycopg.connect(second.url) as client:
        assert client.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_stopped_postgres_leaves_no_processes_memory_or_sockets(tmp_path: Path) -> None:
    server = prepare_postgres(tmp_path / "postgres", durable=False)
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    with running(server.process, log=tmp_path / "log") as process:
        memory = shared_memory_of(process.pid)
        assert memory
        assert memory <= existing_shared_memory()
        assert port in listening_ports()
    eventually(lambda: not processes_inside(tmp_path), within_s=10, what="all processes have ended")
    assert not memory & existing_shared_memory()
    assert port not in listening_ports()
    assert not list(Path("/tmp").glob(f".s.PGSQL.{port}*"))


def test_postgres_starts_if_its_old_process_id_belongs_to_another_program(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "postgres"
    prepare_postgres(folder, durable=False)
    with subprocess.Popen(["sleep", "60"]) as other:
        # As after SIGKILL and a restart of the machine.
        (folder / "data" / "postmaster.pid").write_text(f"{other.pid}\n{folder / 'data'}\n")
        server = prepare_postgres(folder, durable=False)
        with running(server.process, log=tmp_path / "log"):
            psycopg.connect(server.url).close()
        other.kill()


def test_interrupted_creation_is_started_again(tmp_path: Path) -> None:
    unfinished = tmp_path / "postgres" / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    server = prepare_postgres(tmp_path / "postgres", durable=False)
    with running(server.process, log=tmp_path / "log"):
        assert not unfinished.exists()
