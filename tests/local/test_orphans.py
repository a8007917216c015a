"""A launcher that is killed leaves nothing, and the next one recovers."""

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
AS_SOMEBODY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@contextmanager
def launched(folder: Path, *prefix: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a launcher with the two databases; yields it and the address of Postgres."""
    command = [*prefix, sys.executable, "-m", "tests.local.databases", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        try:
            yield launcher, json.loads(launcher.stdout.readline())[0]
        finally:
            launcher.send_signal(signal.SIGINT)


def test_when_the_launcher_is_killed_its_servers_end_and_free_their_memory(
    tmp_path: Path,
) -> None:
    with launched(tmp_path) as (launcher, _):
        servers = processes_inside(tmp_path)
        memory = {name for pid in servers for name in shared_memory_of(pid)}
        assert memory
        launcher.kill()
    eventually(lambda: not processes_inside(tmp_path), within_s=10, what="all have ended")
    assert not memory & existing_shared_memory()


def test_after_a_kill_the_next_start_has_the_data(tmp_path: Path) -> None:
    with launched(tmp_path) as (launcher, url):
        with psycopg.connect(url) as client:
            client.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        launcher.kill()
    with launched(tmp_path) as (launcher, url), psycopg.connect(url) as client:
        assert client.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_after_a_kill_of_postgres_itself_it_comes_back_with_the_data(tmp_path: Path) -> None:
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

        eventually(has_data, within_s=10, what="Postgres is back with its data")


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all the other tests so")
def test_an_ordinary_user_starts_and_stops_it_all(tmp_path: Path) -> None:
    with launched(tmp_path, *AS_SOMEBODY) as (_, url):
        psycopg.connect(url).close()
    assert not processes_inside(tmp_path)
