"""A pytest plugin: real Postgres and Valkey for the whole run, in a temporary directory.

Loaded by `-p tests.services` because pytest-django reads the settings, and they read the
environment, before any conftest.py. TEST_DATABASE_URL and TEST_REDIS_URL name servers to use
instead.

With pytest-xdist all processes share one Postgres, in which pytest-django creates a database for
each worker. Each worker has its own Valkey, because databases do not separate publish/subscribe.

With TEST_REDIS_CLUSTER=1 the site uses a cluster for all data except Celery's queue. With
TEST_PGBOUNCER=/path/of/pgbouncer it connects to Postgres through the pooler; add --reuse-db,
because a database with open connections of a pooler cannot be dropped.
"""

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from swarm_web.local.databases import LocalServer, prepare_postgres, prepare_valkey
from tests.pgbouncer import prepare_pgbouncer
from tests.processes import running
from tests.valkey_cluster import valkey_cluster


def start_services() -> None:
    """Start the missing services, export all settings, and stop the services at exit."""
    cleanup = ExitStack()
    atexit.register(cleanup.close)
    folder = Path(tempfile.mkdtemp(prefix="murmuration-tests-"))
    cleanup.callback(shutil.rmtree, folder)
    folder.chmod(0o711)  # Postgres may run as another user.

    def start(server: LocalServer) -> str:
        log = folder / f"{server.process.name}.log"
        cleanup.enter_context(running(server.process, log=log))
        return server.url

    database_url = os.environ.get("TEST_DATABASE_URL") or start(
        prepare_postgres(folder / "postgres", durable=False)
    )
    if (program := os.environ.get("TEST_PGBOUNCER")) and "PYTEST_XDIST_WORKER" not in os.environ:
        database_url = start(prepare_pgbouncer(program, folder / "pgbouncer", database_url))
        os.environ["DATABASE_POOLER"] = "true"
    redis_url = os.environ.get("TEST_REDIS_URL") or start(prepare_valkey(folder / "valkey"))
    stores = {"REDIS_URL": redis_url}
    if os.environ.get("TEST_REDIS_CLUSTER"):
        cluster = cleanup.enter_context(valkey_cluster(folder / "cluster"))
        stores = {
            "REDIS_URL": cluster.url,
            "REDIS_CLUSTER": "true",
            "CELERY_BROKER_URL": redis_url,
        }
    for name in ("static", "dist"):
        (folder / name).mkdir()
    os.environ |= {
        "TEST_DATABASE_URL": database_url,  # Workers inherit it.
        # Several workers and their processes share the cores: one thread each. If a test uses more,
        # they must not spin while they wait for each other.
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        # Many tests date rollouts when their module is imported, which may be long before they run.
        "RELAY_MAX_AGE_S": "86400",
        "DEBUG": "true",  # Static files are served from their sources.
        "SECRET_KEY": "for-tests-only",
        "DATABASE_URL": database_url,
        **stores,
        "STATIC_ROOT": str(folder / "static"),
        "DIST_DIR": str(folder / "dist"),
    }


start_services()
