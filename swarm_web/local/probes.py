"""TCP ports on loopback, and HTTP checks of the web process.

`python -m swarm_web.local.probes PORT PATH` exits with 0 if `GET PATH` returns status
200, otherwise with 1.
"""

import http.client
import json
import socket
import sys

from swarm_web.local import LaunchError

HOST = "127.0.0.1"
_MAX_PORT = 65535
_TIMEOUT_S = 2.0


def free_port() -> int:
    """Return a port of this machine that is not in use now."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int) -> None:
    """Raise LaunchError if `port` cannot be opened, for example because it is in use."""
    if not 0 < port <= _MAX_PORT:
        raise LaunchError(f"Port {port} does not exist: choose one from 1 to {_MAX_PORT}.")
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise LaunchError(
            f"Port {port} cannot be used ({error.strerror}). Stop the program that uses it, or "
            f"choose another port, for example `make demo PORT={port + 1}`."
        ) from error


def answers_ok(port: int, path: str) -> bool:
    """Return whether `GET path` on this machine's `port` returns status 200. Uses no proxy."""
    return _get(port, path) is not None


def has_judged(port: int) -> bool:
    """Return whether one of the newest rounds of the site on `port` is closed.

    False if the site does not respond.
    """
    answer = _get(port, "/api/v1/rounds")
    rounds = json.loads(answer)["items"] if answer else []
    return any(judge_round["phase"] == "closed" for judge_round in rounds)


def _get(port: int, path: str) -> bytes | None:
    """Return the response body; None if the status is not 200 or there is no response."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read() if response.status == http.client.OK else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not answers_ok(int(sys.argv[1]), sys.argv[2]))
