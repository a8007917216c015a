"""A web process on the test database, for tests with external clients."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, STDOUT, Popen

from django.db import connection

from swarm_web.local.commands import here, serve_web

SERVER = [*here(serve_web(host="127.0.0.1", port=0)), "--lifespan", "off"]


@contextmanager
def serving(log: list[str] | None = None, /, **settings: str) -> Iterator[str]:
    """Run uvicorn on the test database and yield the site's address; it must log no traceback.

    The lines that it wrote are appended to `log` at the end.
    """
    database = connection.settings_dict
    url = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**database)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Inherited by connections. uvicorn sets it only on sockets that it opened; without it the
        # body of each response is sent 40 ms late.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = Popen(
            [*SERVER, "--fd", str(listener.fileno())],
            env=os.environ | {"DATABASE_URL": url} | settings,
            pass_fds=[listener.fileno()],
            stdout=PIPE,
            stderr=STDOUT,
        )
        # The listener queues connections, so clients may connect before the server is up.
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.terminate()
            output, _ = server.communicate(timeout=20)
    if log is not None:
        log += output.decode().splitlines()
    assert b"Traceback" not in output, output.decode()
