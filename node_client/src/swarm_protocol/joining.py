"""How a client gets its token: the device authorization grant (RFC 8628), over HTTP.

The client asks `DEVICE_CODE_PATH` for a code, shows it to a person, and asks `DEVICE_TOKEN_PATH`
until the person has approved it on the page `DEVICE_PATH`. Requests are forms, replies are JSON.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from swarm_protocol.messages.fields import Name

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

# No spaces and no control characters: a secret stands in a header, an address in a terminal.
_Secret = Annotated[str, Meta(pattern=r"^[!-~]{0,512}\Z")]
_Address = Annotated[str, Meta(pattern=r"^https?://[!-~]{1,500}\Z")]


class DeviceCode(Struct, frozen=True, kw_only=True):
    """A code that a person approves (RFC 8628, section 3.2).

    `device_code` is the client's secret, `user_code` what the person types. `expires_in` and
    `interval` are seconds; the client asks for its token at most once in each interval.
    """

    device_code: _Secret
    user_code: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,32}\Z")]
    verification_uri: _Address
    verification_uri_complete: _Address
    expires_in: Annotated[int, Meta(ge=1, le=86_400)]
    interval: Annotated[int, Meta(ge=1, le=600)]


class DeviceToken(Struct, frozen=True, kw_only=True):
    """The node's token (RFC 6749, section 5.1), and the node's name.

    `access_token` is empty where the client asked for an owner for a node whose token it has.
    """

    access_token: _Secret
    node: Name
    token_type: Literal["Bearer"] = "Bearer"


class DeviceError(Struct, frozen=True, kw_only=True):
    """Why there is no token, or not yet (RFC 8628, section 3.5).

    `error` is a DeviceErrorCode, or one that only a newer coordinator knows.
    """

    error: Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,64}\Z")]
    error_description: str = ""
