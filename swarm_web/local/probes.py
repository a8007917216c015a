"""Ask the web process how it is: `python -m swarm_web.local.probes PORT PATH` exits with 0 or 1."""

import http.client
import json
import sys

from swarm_web.local.ports import HOST

_TIMEOUT_S = 2.0


def answers_ok(port: int, path: str) -> bool:
    """Say whether `GET path` on this machine's `port` gives 200. No proxy is asked."""
    return _get(port, path) is not None


def has_judged(port: int) -> bool:
    """Say whether the site on `port` has closed a judge round."""
    answer = _get(port, "/api/v1/rounds")
    rounds = json.loads(answer)["items"] if answer else []
    return any(judge_round["phase"] == "closed" for judge_round in rounds)


def _get(port: int, path: str) -> bytes | None:
    """Return the answer's body; None for any status but 200, or when nobody answers."""
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
