"""How the client waits for its token, against a server with scripted replies."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import msgspec
import pytest

from node_client.errors import CoordinatorRefusedError, NodeError
from node_client.site import Site
from node_client.swarm.device_flow import (
    MAX_REPLY_BYTES,
    SLOWER_BY_S,
    UNREACHED_PAUSE_S,
    DeviceFlow,
)
from swarm_protocol.joining import DeviceCode

GIVEN = (200, {"access_token": "swarm_t", "node": "heron", "token_type": "Bearer"})
PENDING = (400, {"error": "authorization_pending"})
SLOW_DOWN = (400, {"error": "slow_down"})
CODE = DeviceCode(
    device_code="secret",
    user_code="BCDF-GHJK",
    verification_uri="",
    verification_uri_complete="",
    expires_in=60,
    interval=2,
)


@contextmanager
def answering(*replies: tuple[int, Any]) -> Iterator[Site]:
    """Serve these replies one after another, and repeat the last one; a string is sent as HTML."""
    left = list(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = left.pop(0) if len(left) > 1 else left[0]
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            if status == HTTPStatus.MOVED_PERMANENTLY:
                self.send_header("Location", "https://swarm.example.org/device/code")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield Site(base=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


class FakeTime:
    """Time that passes only while the client waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def flow(self, site: Site) -> DeviceFlow:
        return DeviceFlow(site, sleep=self.waits.append, clock=lambda: sum(self.waits))


def wait(*replies: tuple[int, Any]) -> tuple[str, list[float]]:
    fake_time = FakeTime()
    with answering(*replies) as site:
        return fake_time.flow(site).await_token(CODE).access_token, fake_time.waits


def test_client_polls_once_per_interval() -> None:
    assert wait(PENDING, PENDING, GIVEN) == ("swarm_t", [2, 2])


def test_client_slows_down_on_request_and_stays_slow() -> None:
    slower = 2 + SLOWER_BY_S
    assert wait(SLOW_DOWN, PENDING, GIVEN) == ("swarm_t", [slower, slower])


def test_reply_of_a_proxy_does_not_end_the_wait() -> None:
    assert wait((503, "<h1>Back soon</h1>"), GIVEN) == ("swarm_t", [UNREACHED_PAUSE_S])


def test_wait_ends_when_the_code_expires() -> None:
    with pytest.raises(NodeError, match="expired"):
        wait(PENDING)


def test_declined_code_raises_a_refusal() -> None:
    with pytest.raises(CoordinatorRefusedError, match="declined on the site"):
        wait((400, {"error": "access_denied", "error_description": "declined on the site"}))


def test_unknown_error_of_a_newer_site_is_shown_unchanged() -> None:
    with pytest.raises(CoordinatorRefusedError, match="a token: moon_phase"):
        wait((400, {"error": "moon_phase"}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval": -1},
        {"interval": 0},
        {"interval": 10**18},
        {"expires_in": -1},
        {"expires_in": 10**18},
        {"user_code": "\x1b[2J"},
        {"user_code": "A" * 1000},
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri": "https://swarm.example.org/\x1b[2J"},
        {"verification_uri_complete": "https://swarm.example.org/" + "a" * 4000},
        {"device_code": "line\r\nbreak"},
    ],
    ids=str,
)
def test_code_with_an_invalid_field_is_refused(wrong: dict[str, Any]) -> None:
    right = {
        **msgspec.to_builtins(CODE),
        "verification_uri": "https://swarm.example.org/device/",
        "verification_uri_complete": "https://swarm.example.org/device/?code=BCDF-GHJK",
    }
    with answering((200, right)) as site:
        assert DeviceFlow(site).request_code().user_code == CODE.user_code
    with (
        answering((200, right | wrong)) as site,
        pytest.raises(NodeError, match="did not issue a code"),
    ):
        DeviceFlow(site).request_code()


@pytest.mark.parametrize("token", ["swarm_a\r\nX-Other: 1", "a" * 10_000])
def test_token_that_does_not_fit_into_a_header_is_refused(token: str) -> None:
    with pytest.raises(NodeError, match="expired"):
        wait((200, {"access_token": token, "node": "heron"}))


def test_redirecting_address_is_reported_with_its_target() -> None:
    with answering((301, "")) as site, pytest.raises(NodeError) as problem:
        DeviceFlow(site).request_code()
    assert "redirects to https://swarm.example.org/" in problem.value.message


def test_endless_reply_is_not_read_completely() -> None:
    with answering((200, " " * (50 * MAX_REPLY_BYTES))) as site, pytest.raises(NodeError):
        DeviceFlow(site).request_code()


@pytest.mark.parametrize("reply", [(404, "<h1>Not found</h1>"), (200, "<p>hello"), (200, {"a": 1})])
def test_address_without_device_codes_is_reported_with_a_remedy(reply: tuple[int, Any]) -> None:
    with answering(reply) as site, pytest.raises(NodeError, match=site.base) as problem:
        DeviceFlow(site).request_code()
    assert "--token-file" in problem.value.fix
