"""Gets a node's token with a code that a person approves on the site (RFC 8628).

Nothing here prints: `commands.joining` shows the code.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import httpx
import msgspec

from node_client.errors import CoordinatorRefusedError, NodeError
from node_client.site import Site
from swarm_protocol.joining import GRANT_TYPE, DeviceCode, DeviceError, DeviceToken
from swarm_protocol.version import CLIENT_VERSION

TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 1 << 16
# RFC 8628, section 3.5: added to the pause after the reply `slow_down`.
SLOWER_BY_S = 5
# Pause after the coordinator could not be reached.
UNREACHED_PAUSE_S = 10

Reply = TypeVar("Reply", DeviceCode, DeviceToken)


class _UnreachedError(Exception):
    """The coordinator could not be reached, or a proxy answered instead."""


class DeviceFlow:
    """Requests a code from a site, then waits for the token that the site issues for it."""

    def __init__(
        self,
        site: Site,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._site = site
        self._sleep = sleep
        self._clock = clock

    def request_code(
        self, *, model: str = "", anonymous: bool = False, token: str = ""
    ) -> DeviceCode:
        """Request a code for a new node that trains `model`, and return the code.

        A person must approve the code, unless `anonymous` is true. An anonymous code needs no
        approval, so `await_token` returns at once.

        If `token` is given, no node is created. The code is then for the anonymous node that has
        this token, and the account that approves the code becomes this node's owner.

        Raises CoordinatorRefusedError if the site refuses, and NodeError if it gives no valid
        reply.
        """
        form = {"client_id": "swarm-node", "client_version": CLIENT_VERSION, "model": model}
        if anonymous:
            form["anonymous"] = "true"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            reply = self._post(self._site.device_code, form, DeviceCode, headers=headers)
        except _UnreachedError as problem:
            raise NodeError(
                f"{self._site.base} did not issue a code: {problem}.",
                fix="Check the address and your network. A coordinator of version 0.1 "
                "does not issue codes: ask its operator for a token and use --token-file FILE.",
            ) from problem
        if isinstance(reply, DeviceError):
            raise _refusal(reply)
        return reply

    def await_token(self, code: DeviceCode) -> DeviceToken:
        """Wait until a person has approved the code, and return the token.

        While the site cannot be reached, the request is repeated until the code expires. Raises
        NodeError when the code has expired, CoordinatorRefusedError for any other refusal, such as
        a declined code.
        """
        form = {
            "client_id": "swarm-node",
            "grant_type": GRANT_TYPE,
            "device_code": code.device_code,
        }
        pause: float = code.interval
        expires_at = self._clock() + code.expires_in
        while self._clock() < expires_at:
            try:
                reply = self._post(self._site.device_token, form, DeviceToken)
            except _UnreachedError:
                self._sleep(UNREACHED_PAUSE_S)
                continue
            if isinstance(reply, DeviceToken):
                return reply
            if reply.error == "slow_down":
                pause += SLOWER_BY_S
            elif reply.error != "authorization_pending":
                raise _refusal(reply)
            self._sleep(pause)
        raise _expiry()

    def _post(
        self,
        url: str,
        form: dict[str, str],
        kind: type[Reply],
        *,
        headers: dict[str, str] | None = None,
    ) -> Reply | DeviceError:
        try:
            with httpx.stream(
                "POST", url, data=form, headers=headers, timeout=TIMEOUT_S
            ) as response:
                content = _read(response)
            if response.has_redirect_location:
                # Not followed: the form would be sent as GET, or to another site.
                raise _UnreachedError(f"it redirects to {response.headers['Location']}")
            if response.is_success:
                return msgspec.json.decode(content, type=kind)
            return msgspec.json.decode(content, type=DeviceError)
        except httpx.HTTPError as problem:
            raise _UnreachedError(str(problem) or type(problem).__name__) from problem
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _UnreachedError(
                f"HTTP status {response.status_code} from {url}, without a valid reply"
            ) from None


def _read(response: httpx.Response) -> bytes:
    """Return a response's body, or only the beginning if it is longer than MAX_REPLY_BYTES."""
    content = b""
    for chunk in response.iter_bytes(MAX_REPLY_BYTES):
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            break
    return content


def _refusal(reply: DeviceError) -> NodeError:
    """Return the error of a refusal, or of a code that has expired."""
    if reply.error == "expired_token":
        return _expiry()
    fixes = {
        "access_denied": "Run the command again for another code.",
        "anonymous_forbidden": "Leave out --anonymous: you get a code to approve with an account.",
        "already_owned": "Sign in on the site: its owner sees the node on the account page.",
        "slow_down": "Try again later.",
    }
    return CoordinatorRefusedError(
        reply.error_description or f"The coordinator did not issue a token: {reply.error}.",
        fix=fixes.get(reply.error, "Ask the operator for a token and use --token-file FILE."),
        code=f"join.{reply.error}",
    )


def _expiry() -> NodeError:
    return NodeError("The code expired before it was approved.", fix="Run the command again.")
