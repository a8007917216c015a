"""Run the commands of the section on backups in docs/operations.md with Postgres's own programs."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from swarm_web.local.databases import find_postgres, prepare_postgres
from tests.deploy.compose import ROOT
from tests.processes import running

pytestmark = pytest.mark.slow

SECTION = (ROOT / "docs/operations.md").read_text().split("## Back up")[1].split("\n## ")[0]
BACK_UP, RESTORE, FORGET = re.findall(r"```sh\n(.+?)```", SECTION, flags=re.DOTALL)
MIGRATE = "docker compose run --rm migrate"
PYTHON = shlex.quote(sys.executable)


@dataclass(frozen=True)
class Host:
    """A machine that hosts a site in containers: its database server and a working directory."""

    url: str
    folder: Path

    def run(self, commands: str) -> subprocess.CompletedProcess[str]:
        """Run commands in a shell, which continues after a failed one."""
        server = urlsplit(self.url)
        environment = os.environ | {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "NOTES": str(self.notes),
            "PROGRAMS": str(find_postgres()),
            "PGHOST": str(server.hostname),
            "PGPORT": str(server.port),
            "PGPASSWORD": str(server.password),
            "DATABASE_URL": self.url,
        }
        return subprocess.run(
            ["bash", "-c", commands],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def do(self, commands: str) -> None:
        """Run commands that must succeed."""
        done = self.run(commands)
        assert done.returncode == 0, done.stderr

    @property
    def notes(self) -> Path:
        """The log of calls of `docker`, one per line."""
        return self.folder / "notes"

    def query(self, question: str, *, database: str = "murmuration") -> list[str]:
        """Return the first column of a query's answer."""
        url = urlsplit(self.url)._replace(path=f"/{database}").geturl()
        with psycopg.connect(url, autocommit=True) as connection:
            answer = connection.execute(question.encode())
            return [str(row[0]) for row in answer] if answer.description else []


@pytest.fixture(scope="module")
def server() -> Iterator[Host]:
    """A server with a site's database, `pristine`, and a backup made before its last row."""
    with tempfile.TemporaryDirectory(prefix="murmuration-backup-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o711)  # Postgres may run as another user.
        postgres = prepare_postgres(folder / "postgres", durable=False)
        docker = folder / "docker"
        docker.write_text(f'#!/bin/sh\nexec {PYTHON} -m tests.deploy.docker "$@"\n')
        docker.chmod(0o755)
        host = Host(postgres.url, folder)
        with running(postgres.process, log=folder / "log"):
            host.do(MIGRATE)
            host.query("INSERT INTO auth_group (name) VALUES ('before')")
            host.do(BACK_UP)
            host.query("INSERT INTO auth_group (name) VALUES ('after')")
            host.query("ALTER DATABASE murmuration RENAME TO pristine", database="postgres")
            yield host


@pytest.fixture
def host(server: Host) -> Host:
    """The site after the backup, before a restore."""
    return reset(server)


@pytest.fixture(scope="module")
def restored(server: Host) -> Host:
    """A site whose nodes lacked their primary key, restored from the backup."""
    host = reset(server)
    host.query("ALTER TABLE nodes_node DROP CONSTRAINT nodes_node_pkey CASCADE")
    host.do(RESTORE)
    return host


def reset(host: Host) -> Host:
    host.notes.unlink(missing_ok=True)
    for database in ("murmuration", "restored", "replaced"):
        host.query(f"DROP DATABASE IF EXISTS {database}", database="postgres")
    host.query("CREATE DATABASE murmuration TEMPLATE pristine", database="postgres")
    return host


def names(host: Host, *, database: str = "murmuration") -> list[str]:
    return host.query("SELECT name FROM auth_group ORDER BY id", database=database)


def test_restored_site_has_the_rows_of_the_backup(restored: Host) -> None:
    assert names(restored) == ["before"]


def test_restored_site_has_the_constraints_of_the_backup(restored: Host) -> None:
    assert restored.query("SELECT conname FROM pg_constraint WHERE conname = 'nodes_node_pkey'")


def test_restore_stops_writing_services_first_and_starts_them_after_migrations(
    restored: Host,
) -> None:
    first, *_, migrated, noted, last = restored.notes.read_text().splitlines()
    assert first == "compose stop web worker beat"
    assert migrated == "compose run migrate"
    assert "manage.py record_restore" in noted
    assert last == "compose up -d"


def test_replaced_database_exists_until_it_is_dropped(restored: Host) -> None:
    assert names(restored, database="replaced") == ["before", "after"]
    restored.do(FORGET)
    assert "replaced" not in restored.query("SELECT datname FROM pg_database", database="postgres")


def test_restore_fails_while_the_site_is_connected_to_the_database(host: Host) -> None:
    with psycopg.connect(host.url):
        assert host.run(RESTORE).returncode != 0
    assert names(host) == ["before", "after"]
    assert "compose up -d" not in host.notes.read_text()


def test_restore_from_damaged_backup_changes_nothing(host: Host) -> None:
    backup = host.folder / "backup"
    whole = backup.read_bytes()
    backup.write_bytes(whole[: len(whole) // 2])
    assert host.run(RESTORE).returncode != 0
    backup.write_bytes(whole)
    assert names(host) == ["before", "after"]


def test_restore_can_be_repeated_after_a_failure(host: Host) -> None:
    host.query("CREATE DATABASE restored", database="postgres")
    host.do(RESTORE)
    assert names(host) == ["before"]
