"""Opens a coordinator's socket, and turns failures into errors for the user.

NoCoordinatorError means that the server at the address is not a coordinator. Any other
UnansweredError means that the coordinator is busy or did not answer; trying again later may help.
"""

import logging
import socket
import ssl

import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.http11 import Response

from node_client.errors import CoordinatorRefusedError, NodeError, NotACoordinatorError
from node_client.site import Site
from swarm_protocol.errors import FIXES, ErrorCode

MAX_SERVER_FRAME_BYTES = 4 << 20
FATAL_STATUS = frozenset({401, 403})
# Statuses besides 5xx of servers and proxies that restart or are overloaded.
_BUSY_STATUS = frozenset({408, 425, 429})
# Codes whose message explains such a status. Coordinators before 0.2 send none.
_EXPLAINED = frozenset(
    {
        ErrorCode.RATE_LIMITED,
        ErrorCode.RATE_FLOOD,
        ErrorCode.SERVER_BUSY,
        ErrorCode.SERVER_RESTART,
        ErrorCode.SERVER_MAINTENANCE,
    }
)


class UnansweredError(Exception):
    """There was no usable reply: no connection, a lost one, a timeout, or a busy coordinator.

    `retry_after` is the wait in seconds that the coordinator asked for, None if it did not.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class NoCoordinatorError(UnansweredError):
    """Something answered that is not a coordinator."""


def open_socket(url: str, token: str) -> connect:
    """Return an `async with` context that opens the node socket at `url` and closes it."""
    # websockets logs headers, and with them the token, at DEBUG: its logger stays above that.
    frames = logging.getLogger(f"{__name__}.frames")
    frames.setLevel(logging.INFO)
    return connect(
        url,
        additional_headers={"Authorization": f"Bearer {token}"},
        compression=None,  # not worth the memory per node on the server for short texts
        max_size=MAX_SERVER_FRAME_BYTES,
        close_timeout=2,
        logger=frames,
    )


async def check_admission(url: str, token: str) -> None:
    """Check that the coordinator accepts the token, by opening its socket and closing it again.

    Raises CoordinatorRefusedError when it refuses the token, NoCoordinatorError when another server
    answers, and UnansweredError when there is no answer or the coordinator is busy.
    """
    try:
        async with open_socket(url, token):
            pass
    except (OSError, WebSocketException) as problem:
        raise explain_failure(problem) from None


def explain_first_join(problem: UnansweredError, site: Site) -> NodeError:
    """Return the error to show when a node that never joined cannot join because of `problem`."""
    if isinstance(problem, NoCoordinatorError):
        return NotACoordinatorError(
            f"{site.base} is not a coordinator: {problem}.",
            fix="Check the address: it is that of the coordinator's own pages, such as its join "
            "page.",
        )
    return NodeError(
        f"{problem}. A node joins for the first time only when its coordinator answers.",
        fix=f"Check the address and the network (`swarm-node doctor {site.base}`), or try again "
        "later. `swarm-node train --offline` trains without a coordinator.",
    )


def explain_failure(problem: Exception) -> UnansweredError:
    """Return the reason for a failed connection as an UnansweredError.

    Raises CoordinatorRefusedError if the coordinator refused the token.
    """
    if isinstance(problem, InvalidStatus):
        return _explain_denial(problem)
    if isinstance(problem, socket.gaierror):
        return UnansweredError("the coordinator's host name is not known here")
    if isinstance(problem, ssl.SSLCertVerificationError):
        return UnansweredError(f"the coordinator's certificate fails: {problem.verify_message}")
    if isinstance(problem, ssl.SSLError):
        return NoCoordinatorError("it does not speak TLS; its address may begin with http://")
    if isinstance(problem, WebSocketException):
        return NoCoordinatorError(f"it does not speak WebSocket ({problem})")
    # The text of an OSError without its number.
    reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return UnansweredError(f"the coordinator cannot be reached: {reason}")


class _Denial(msgspec.Struct):
    """The JSON body of a refused handshake; `retry_after` is in seconds."""

    code: str
    message: str = "The coordinator refused this node's token."
    fix: str = FIXES[ErrorCode.AUTH_INVALID]
    retry_after: float | None = None


def _explain_denial(refused: InvalidStatus) -> UnansweredError:
    """Return the error for an HTTP status.

    Raises CoordinatorRefusedError for 401 and 403, unless the body is another server's page.
    """
    status = refused.response.status_code
    denial = _read_denial(refused.response)
    if status >= 500 or status in _BUSY_STATUS:
        reason = f"the coordinator answered with HTTP status {status}"
        if denial is not None and denial.code in _EXPLAINED:
            reason = denial.message
        return UnansweredError(reason, retry_after=_read_wait(refused.response, denial))
    if status not in FATAL_STATUS:
        return NoCoordinatorError(f"it answered with HTTP status {status}")
    if denial is None:
        return UnansweredError(f"a proxy or a firewall answered with HTTP status {status}")
    raise CoordinatorRefusedError(denial.message, fix=denial.fix, code=denial.code)


def _read_denial(response: Response) -> _Denial | None:
    """Return the body of a refused handshake, None if it is not from a coordinator.

    An empty body means that the token is invalid: some web servers cannot send a body.
    """
    if not response.body:
        return _Denial(ErrorCode.AUTH_INVALID.value)
    try:
        return msgspec.json.decode(response.body, type=_Denial)
    except (msgspec.DecodeError, UnicodeDecodeError):  # the page of a proxy
        return None


def _read_wait(response: Response, denial: _Denial | None) -> float | None:
    """Return the wait in seconds that the coordinator asked for; None if it did not.

    The value in the body takes precedence, because the header `Retry-After` has whole seconds only.
    """
    if denial is not None and denial.retry_after is not None:
        return denial.retry_after
    header = response.headers.get("Retry-After", "")
    return float(header) if header.isascii() and header.isdigit() else None
