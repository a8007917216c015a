"""How a client gets its token: the device authorization grant (RFC 8628), over HTTP.

The client asks `DEVICE_CODE_PATH` for a code, shows it to a person, and asks `DEVICE_TOKEN_PATH`
until the person has approved it on the page `DEVICE_PATH`. Requests are forms, replies are JSON.
"""

from typing import Literal

from msgspec import Struct

DEVICE_PATH = "/device/"
DEVICE_CODE_PATH = "/device/code"
DEVICE_TOKEN_PATH = "/device/token"
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"

DeviceErrorCode = Literal[
    "authorization_pending",
    "slow_down",
    "access_denied",
    "expired_token",
    "invalid_request",
    "unsupported_grant_type",
    # Of this protocol: the site lets no node join without an account, or the node has an owner.
    "anonymous_forbidden",
    "already_owned",
]


class DeviceCode(Struct, frozen=True, kw_only=True):
    """A code that a person approves (RFC 8628, section 3.2).

    `device_code` is the client's secret, `user_code` what the person types. `expires_in` and
    `interval` are seconds; the client asks for its token at most once in each interval.
    """

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class DeviceToken(Struct, frozen=True, kw_only=True):
    """The node's token (RFC 6749, section 5.1), and the node's name.

    `access_token` is empty where the client asked for an owner for a node whose token it has.
    """

    access_token: str
    node: str
    token_type: Literal["Bearer"] = "Bearer"


class DeviceError(Struct, frozen=True, kw_only=True):
    """Why there is no token, or not yet (RFC 8628, section 3.5).

    `error` is a DeviceErrorCode, or one that only a newer coordinator knows.
    """

    error: str
    error_description: str = ""
