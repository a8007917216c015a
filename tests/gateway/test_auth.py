"""Authentication: the token is checked before the socket is accepted."""

import json
import logging
from typing import Any

import pytest
from asgiref.typing import ASGIReceiveEvent, ASGISendEvent, WebSocketScope
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from swarm_web.gateway.auth import TokenGate, read_token
from swarm_web.nodes.models import Node
from tests.gateway.conftest import Member
from tests.gateway.sessions import read_counts
from tests.sockets import node_socket


async def denied(url: str, headers: dict[str, str]) -> InvalidStatus:
    with pytest.raises(InvalidStatus) as denial:
        await connect(url, additional_headers=headers)
    return denial.value


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer swarm_wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic c3dhcm06c3dhcm0="},
        {"Authorization": "Bearer \xff\xfe"},
    ],
    ids=["none", "wrong", "empty", "basic", "not-ascii"],
)
async def test_handshake_without_a_valid_token_gets_401_with_a_reason(
    gateway: str, headers: dict[str, str]
) -> None:
    response = (await denied(f"{gateway}/ws/node/", headers)).response
    body = json.loads(response.body)
    assert response.status_code == 401
    assert body["code"] == "auth.invalid"
    assert body["message"]
    assert body["fix"]
    assert await read_counts() == {"connections": {"denied": 1}, "refused": {"auth.invalid": 1}}


async def test_token_of_a_blocked_node_is_refused(gateway: str, amber: Member) -> None:
    await Node.objects.filter(pk=amber.node.pk).aupdate(blocked=True)
    denial = await denied(f"{gateway}/ws/node/", {"Authorization": f"Bearer {amber.token}"})
    assert denial.response.status_code == 401
    assert json.loads(denial.response.body)["message"] == "the operator blocked this node"


async def test_unknown_websocket_path_gets_404(gateway: str) -> None:
    assert (await denied(f"{gateway}/ws/nothing/", {})).response.status_code == 404


async def test_tokens_are_not_logged(
    gateway: str, amber: Member, caplog: pytest.LogCaptureFixture
) -> None:
    # Messages below production's log level must not contain it either.
    for logger in ("", "uvicorn.error"):
        caplog.set_level(logging.INFO, logger)
    async with node_socket(gateway, amber.token):
        pass
    await denied(f"{gateway}/ws/node/", {"Authorization": "Bearer swarm_secret"})
    assert "accepted" in caplog.text
    assert amber.token not in caplog.text
    assert "swarm_secret" not in caplog.text


async def test_denied_socket_is_closed_when_the_server_cannot_respond_by_http() -> None:
    sent: list[ASGISendEvent] = []

    async def receive() -> ASGIReceiveEvent:
        return {"type": "websocket.connect"}

    async def send(event: ASGISendEvent) -> None:
        sent.append(event)

    async def never(*_: Any) -> None:
        raise AssertionError("a connection without a token was accepted")

    await TokenGate(never)(scope_with([], extensions={}), receive, send)
    assert [(event["type"], event.get("code")) for event in sent] == [("websocket.close", 4401)]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_authorization_scheme_is_case_insensitive(scheme: str) -> None:
    headers = [(b"host", b"x"), (b"authorization", f"{scheme} swarm_t".encode())]
    assert read_token(scope_with(headers)) == "swarm_t"


def scope_with(headers: list[tuple[bytes, bytes]], **more: Any) -> WebSocketScope:
    scope: Any = {"type": "websocket", "headers": headers, **more}
    return scope  # type: ignore[no-any-return]  # read_token uses no other key of a scope.
