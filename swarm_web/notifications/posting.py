"""One POST to an address that a stranger gave us.

    PostError             no answer with a status came: `failure` says why

The name is resolved once, every address that it has is checked, and the connection is made to one
that was checked: a second answer of the name server changes nothing. Redirects are not followed,
proxies of the environment are not asked, the answer's body is not read. All of it, apart from the
system's resolver, ends within `PATIENCE_S`.
"""

import io
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from time import monotonic
from typing import Any, cast

from swarm_web.notifications.targets import Target, may_be_called

CONNECT_WITHIN_S = 3.0
PATIENCE_S = 10.0
# The status and headers of an answer, in bytes.
LARGEST_ANSWER = 16_384
# A name may have many addresses; a dead one must not use up the time.
_TRIED = 2


class PostError(Exception):
    """No answer came; `failure` is a value of `models.Failure`."""

    def __init__(self, failure: str) -> None:
        super().__init__(failure)
        self.failure = failure


def post(target: Target, body: bytes, *, headers: Mapping[str, str], private: bool) -> int:
    """Post the body and return the status of the answer. Raises PostError."""
    until = monotonic() + PATIENCE_S
    addresses = resolve(target, private=private)
    try:
        with _connect(addresses, target.port) as plain, _secure(plain, target, until) as stream:
            return _exchange(_Stream(stream, until), target, body, headers)
    except ssl.SSLCertVerificationError:
        raise PostError("untrusted") from None
    except TimeoutError:
        raise PostError("timeout") from None
    except OSError:
        raise PostError("unreachable") from None
    except (HTTPException, ValueError):
        raise PostError("garbled") from None


def resolve(target: Target, *, private: bool) -> list[str]:
    """Return the IP addresses of a target's host. Raises PostError unless all may be called."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    # A label that IDNA cannot encode is a UnicodeError.
    except (OSError, UnicodeError):
        raise PostError("unresolved") from None
    # A name may be given twice; the order is the system's preference.
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    if not all(may_be_called(ip_address(address), private=private) for address in addresses):
        raise PostError("forbidden")
    return addresses


def _connect(addresses: list[str], port: int) -> socket.socket:
    """Connect to the first address that answers. Raises OSError."""
    problem: OSError = OSError("no addresses")
    for address in addresses[:_TRIED]:
        try:
            return socket.create_connection((address, port), timeout=CONNECT_WITHIN_S)
        except OSError as failed:
            problem = failed
    raise problem


def _secure(plain: socket.socket, target: Target, until: float) -> socket.socket:
    """Return the socket with TLS where the scheme asks for it. The handshake has a deadline."""
    plain.settimeout(_left(until))
    if target.scheme == "http":
        return plain
    return _tls().wrap_socket(plain, server_hostname=target.host)


@cache
def _tls() -> ssl.SSLContext:
    """Read the system's certificates once a process."""
    return ssl.create_default_context()


def _exchange(stream: "_Stream", target: Target, body: bytes, headers: Mapping[str, str]) -> int:
    connection = HTTPConnection(target.host, target.port)
    # The default port is left out of the Host header only if the connection has it as its own.
    connection.default_port = 443 if target.scheme == "https" else 80
    connection.sock = cast("socket.socket", stream)
    connection.request("POST", target.path, body, {**headers, "Connection": "close"})
    return connection.getresponse().status


def _left(until: float) -> float:
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Stream:
    """What http.client needs of a socket, with an end to its patience and to its appetite."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def sendall(self, data: bytes) -> None:
        """Send the request. Raises OSError."""
        self._sock.settimeout(_left(self._until))
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the answer as a file that ends early rather than late."""
        return io.BufferedReader(_Answer(self._sock, self._until))

    def close(self) -> None:
        """Leave closing to whoever opened the socket."""


class _Answer(io.RawIOBase):
    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until, self._room = sock, until, LARGEST_ANSWER

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there, at most what there is room for; 0 is the end."""
        if not self._room:
            return 0
        self._sock.settimeout(_left(self._until))
        taken = self._sock.recv_into(memoryview(buffer)[: self._room])
        self._room -= taken
        return taken
