"""What a failed handshake means: the coordinator is away, or the address has none."""

import socket
import ssl

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import InvalidMessage, InvalidStatus
from websockets.http11 import Response

from node_client.errors import CoordinatorRefusedError, NotACoordinatorError
from node_client.site import Site
from node_client.swarm.handshake import NoCoordinatorError, explain_failure, explain_first_join

SITE = Site("https://swarm.example.org")


def status(code: int, *, body: bytes = b"") -> InvalidStatus:
    return InvalidStatus(Response(code, "", Headers(), body))


def expired() -> ssl.SSLCertVerificationError:
    problem = ssl.SSLCertVerificationError(1, "certificate verify failed")
    problem.verify_message = "certificate has expired"
    return problem


AWAY = [
    *(status(code) for code in (408, 425, 429, 500, 502, 503, 504, 521)),
    *(ConnectionRefusedError(111, "Connection refused"), TimeoutError("timed out")),
    *(socket.gaierror(-2, "Name or service not known"), ConnectionResetError()),
    expired(),
    *(status(code, body=b"<html>Forbidden</html>") for code in (401, 403)),
    status(403, body=b'{"error": "blocked"}'),
]
STRANGERS = [
    *(status(code) for code in (200, 204, 301, 400, 404, 405, 426)),
    *(InvalidMessage("no HTTP"), ssl.SSLError("wrong version number")),
]


@pytest.mark.parametrize("problem", AWAY, ids=repr)
def test_unreachable_coordinator_may_return(problem: Exception) -> None:
    explained = explain_failure(problem)
    assert not isinstance(explained, NoCoordinatorError)
    failure = explain_first_join(explained, SITE)
    assert not isinstance(failure, NotACoordinatorError)
    assert "swarm-node doctor https://swarm.example.org" in failure.fix


@pytest.mark.parametrize("body", [b"", b'{"code": "auth.invalid"}'])
@pytest.mark.parametrize("code", [401, 403])
def test_refused_token_ends_the_node(code: int, body: bytes) -> None:
    with pytest.raises(CoordinatorRefusedError) as refused:
        explain_failure(status(code, body=body))
    assert refused.value.code == "auth.invalid"


@pytest.mark.parametrize("problem", STRANGERS, ids=repr)
def test_other_response_means_that_there_is_no_coordinator(problem: Exception) -> None:
    failure = explain_first_join(explain_failure(problem), SITE)
    assert isinstance(failure, NotACoordinatorError)
    assert failure.message.startswith("https://swarm.example.org is not a coordinator: it ")
