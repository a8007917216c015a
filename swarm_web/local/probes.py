"""Ask the web process how it is: `python -m swarm_web.local.probes PORT PATH` exits with 0 or 1."""

import http.client
import sys

from swarm_web.local.ports import HOST

_TIMEOUT_S = 2.0


def answers_ok(port: int, path: str) -> bool:
    """Say whether `GET path` on this machine's `port` gives 200. No proxy is asked."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not answers_ok(int(sys.argv[1]), sys.argv[2]))
