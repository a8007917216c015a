"""Test that a killed launcher leaves no processes, and that the next start recovers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.local.processes import existing_shared_memory, processes_inside, shared_memory_of
from tests.processes import eventually

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AS_ORDINARY_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@contextmanager
def launched(folder: Path, *prefix: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a launcher with the two databases; yield it and the address of Postgres."""
    command = [*prefix, sys.executable, "-m", "tests.local.databases", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        try:
            yield launcher, json.loads(launcher.stdout.readline())[0]
        finally:
            launcher.send_signal(signal.SIGINT)


def test_servers_end_and_free_their_memory_if_the_launcher_is_killed(
    tmp_path: Path,
) -> None:
    with launched(tmp_path) as (launcher, _):
        servers = processes_inside(tmp_path)
        memory = {name for pid in servers for name in shared_memory_of(pid)}
        assert memory
        launcher.kill()
    eventually(lambda: not processes_inside(tmp_path), within_s=10, what="all have ended")
    assert not memory & existing_shared_memory()


def test_data_survives_a_killed_launcher(tmp_path: Path) -> None:
    with launched(tmp_path) as (launcher, url):
        with psycopg.connect(url) as client:
            client.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        launcher.kill()
    with launched(tmp_path) as (launcher, url), psycopg.connect(url) as client:
        assert client.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_killed_postgres_is_restarted_with_its_data(tmp_path: Path) -> None:
    with launched(tmp_path) as (_, url):
        with psycopg.connect(url) as client:
            client.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        pid = int((tmp_path / "postgres/data/postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)

        def has_data() -> bool:
            try:
                with psycopg.connect(url) as client:
                    return client.execute("SELECT answer FROM kept").fetchone() == (42,)
            except psycopg.OperationalError:
                return False

        eventually(has_data, within_s=10, what="Postgres has restarted with its data")


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs the other tests this way")
def test_ordinary_user_can_start_and_stop_the_databases(tmp_path: Path) -> None:
    with launched(tmp_path, *AS_ORDINARY_USER) as (_, url):
        psycopg.connect(url).close()
    assert not processes_inside(tmp_path)
