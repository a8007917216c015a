"""A real pgbouncer between the tests and Postgres, configured to expose use of session state.

Each transaction uses another of several sessions, and sessions are reset after each one.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from swarm_web.local.databases import LocalServer
from swarm_web.local.probes import HOST, free_port
from swarm_web.local.process import SiteProcess, hand_over, unprivileged_user

_CONFIGURATION = """\
[databases]
* = host={host} port={server_port} user={user} password={password}
[pgbouncer]
listen_addr = {listen}
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = users.txt
pool_mode = transaction
default_pool_size = 8
server_round_robin = 1
server_reset_query = DISCARD ALL
server_reset_query_always = 1
max_client_conn = 1000
"""


def prepare_pgbouncer(program: str, folder: Path, database_url: str) -> LocalServer:
    """Write the configuration into `folder` and return the pooler for this Postgres."""
    address = urlsplit(database_url)
    run_as = unprivileged_user()
    folder.mkdir(mode=0o700)
    port = free_port()
    (folder / "users.txt").write_text(f'"{address.username}" "{address.password}"\n')
    (folder / "pgbouncer.ini").write_text(
        _CONFIGURATION.format(
            host=address.hostname,
            server_port=address.port,
            user=address.username,
            password=address.password,
            listen=HOST,
            port=port,
        )
    )
    hand_over(folder, run_as)
    user = f"{address.username}:{address.password}"
    url = f"postgres://{user}@{HOST}:{port}{address.path}"
    process = SiteProcess(
        name="pgbouncer",
        command=(program, "pgbouncer.ini"),
        folder=folder,
        run_as=run_as,
        environment=dict(os.environ),
        is_ready=lambda: _accepts_connections(url),
        ready_timeout_s=10,
    )
    return LocalServer(process=process, url=url)


def _accepts_connections(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
