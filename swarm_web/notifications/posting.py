"""One POST request to an untrusted address.

    PostError             no HTTP status was received: `failure` says why

The host name is resolved once, all its addresses are checked, and the connection goes to one of
them. The name is not resolved again, so a name server cannot pass the check with one address and
then direct the connection to another. Redirects are not followed, proxies of the environment are
not used, and the body of the response is not read. Everything ends within `TIMEOUT_S`, except that
the system's resolver may take longer; connecting may then take 6 s more.
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

from swarm_web.notifications.targets import NotificationTarget, may_be_called

CONNECT_TIMEOUT_S = 3.0
TIMEOUT_S = 10.0
# Maximum bytes of a response's status and headers.
MAX_RESPONSE_BYTES = 16_384
# Number of addresses of a name to try, because each may take the full timeout.
_MAX_ADDRESSES = 2


class PostError(Exception):
    """No HTTP status was received; `failure`, a value of `models.Failure`, says why."""

    def __init__(self, failure: str) -> None:
        super().__init__(failure)
        self.failure = failure


def post(
    target: NotificationTarget, body: bytes, *, headers: Mapping[str, str], private: bool
) -> int:
    """Send the body and return the HTTP status of the response, which may be an error status.

    `private` allows private IP addresses (`targets.may_be_called`). Raises PostError if no status
    is received, or if an address of the target is forbidden.
    """
    until = monotonic() + TIMEOUT_S
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


def resolve(target: NotificationTarget, *, private: bool) -> list[str]:
    """Return the IP addresses of the target's host, without duplicates.

    Raises PostError if there is no address, or if one of them is forbidden. `private` allows
    private addresses.
    """
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    # A label that IDNA cannot encode is a UnicodeError.
    except (OSError, UnicodeError):
        raise PostError("unresolved") from None
    # Without duplicates, in the system's order of preference.
    addresses = list(dict.fromkeys(str(socket_address[0]) for *_, socket_address in found))
    if not all(may_be_called(ip_address(address), private=private) for address in addresses):
        raise PostError("forbidden")
    return addresses


def _connect(addresses: list[str], port: int) -> socket.socket:
    """Try the first two addresses in order, and return a socket connected to one of them.

    Raises OSError if neither can be reached.
    """
    problem: OSError = OSError("no addresses")
    for address in addresses[:_MAX_ADDRESSES]:
        try:
            return socket.create_connection((address, port), timeout=CONNECT_TIMEOUT_S)
        except OSError as failed:
            problem = failed
    raise problem


def _secure(plain: socket.socket, target: NotificationTarget, until: float) -> socket.socket:
    """Return the socket, wrapped in TLS if the target's scheme is https.

    The handshake must end by `until`, a time of `monotonic()`.
    """
    plain.settimeout(_remaining(until))
    if target.scheme == "http":
        return plain
    return _tls().wrap_socket(plain, server_hostname=target.host)


@cache
def _tls() -> ssl.SSLContext:
    """Return the TLS context with the system's certificates, loaded once per process."""
    return ssl.create_default_context()


def _exchange(
    stream: "_Stream", target: NotificationTarget, body: bytes, headers: Mapping[str, str]
) -> int:
    connection = HTTPConnection(target.host, target.port)
    # http.client omits the port from the Host header only if it is the default port.
    connection.default_port = 443 if target.scheme == "https" else 80
    connection.sock = cast("socket.socket", stream)
    connection.request("POST", target.path, body, {**headers, "Connection": "close"})
    return connection.getresponse().status


def _remaining(until: float) -> float:
    remaining = until - monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


class _Stream:
    """The part of a socket that http.client uses, with a deadline and a response size limit."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def sendall(self, data: bytes) -> None:
        """Send `data`. Raises OSError if that fails or the deadline has passed."""
        self._sock.settimeout(_remaining(self._until))
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file from which at most MAX_RESPONSE_BYTES of the response can be read."""
        return io.BufferedReader(_Response(self._sock, self._until))

    def close(self) -> None:
        """Do nothing: the caller closes the socket."""


class _Response(io.RawIOBase):
    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until, self._bytes_left = sock, until, MAX_RESPONSE_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer` and return the number of bytes; 0 at the end or at the limit."""
        if not self._bytes_left:
            return 0
        self._sock.settimeout(_remaining(self._until))
        taken = self._sock.recv_into(memoryview(buffer)[: self._bytes_left])
        self._bytes_left -= taken
        return taken
