"""The replies with which a client gets its token, by the device authorization grant (RFC 8628).

Over HTTP, the client requests a code from `DEVICE_CODE_PATH` and shows it to a person. Then it
requests the token from `DEVICE_TOKEN_PATH`, again and again, until the person has approved the code
on the page `DEVICE_PATH`. Requests are forms, replies are JSON.
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
    # Not in the RFCs: the site allows no node without an account; the node has an owner already.
    "anonymous_forbidden",
    "already_owned",
]

# No spaces and no control characters: secrets are sent in headers, addresses shown on terminals.
_Secret = Annotated[str, Meta(pattern=r"^[!-~]{0,512}\Z")]
_Address = Annotated[str, Meta(pattern=r"^https?://[!-~]{1,500}\Z")]


class DeviceCode(Struct, frozen=True, kw_only=True):
    """A code that a person approves (RFC 8628, section 3.2).

    `device_code` is the client's secret, `user_code` the code that the person enters at
    `verification_uri`. `expires_in` and `interval` are seconds; the client must wait for `interval`
    between two requests for the token.
    """

    device_code: _Secret
    user_code: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,32}\Z")]
    verification_uri: _Address
    verification_uri_complete: _Address
    expires_in: Annotated[int, Meta(ge=1, le=86_400)]
    interval: Annotated[int, Meta(ge=1, le=600)]


class DeviceToken(Struct, frozen=True, kw_only=True):
    """A node's token (RFC 6749, section 5.1) and its name.

    `access_token` is empty if the person claimed an existing node, that is, became its owner. The
    client has that node's token already.
    """

    access_token: _Secret
    node: Name
    token_type: Literal["Bearer"] = "Bearer"


class DeviceError(Struct, frozen=True, kw_only=True):
    """Why there is no token, or no token yet (RFC 8628, section 3.5).

    `error` is a DeviceErrorCode, or one that only a newer coordinator knows.
    """

    error: Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,64}\Z")]
    error_description: str = ""
