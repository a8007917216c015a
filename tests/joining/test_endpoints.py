"""Test the HTTP endpoints that clients use to join."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from swarm_protocol.joining import DEVICE_CODE_PATH, DEVICE_TOKEN_PATH, GRANT_TYPE
from swarm_web.joining.models import JoinRequest
from swarm_web.nodes.services import create_node

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client() -> Client:
    """An HTTP client without cookies, and without Django's exemption from CSRF checks."""
    return Client(enforce_csrf_checks=True)


def request_code(
    client: Client, form: dict[str, str] | None = None, **headers: Any
) -> HttpResponse:
    return client.post(DEVICE_CODE_PATH, form or {}, headers=headers)  # type: ignore[return-value]


def poll(client: Client, **form: str) -> HttpResponse:
    form = {"grant_type": GRANT_TYPE} | form
    return client.post(DEVICE_TOKEN_PATH, form)  # type: ignore[return-value]


def test_code_comes_with_the_address_of_the_verification_page(client: Client) -> None:
    given = json.loads(request_code(client).content)
    assert given["verification_uri"] == "http://testserver/device/"
    assert given["verification_uri_complete"].endswith(f"?code={given['user_code']}")
    assert (given["expires_in"], given["interval"]) == (900, 2)


def test_no_response_may_be_cached(client: Client) -> None:
    assert request_code(client)["Cache-Control"] == "no-store"
    assert poll(client, device_code="x")["Cache-Control"] == "no-store"


def test_polling_client_receives_authorization_pending(client: Client) -> None:
    given = json.loads(request_code(client).content)
    reply = poll(client, device_code=given["device_code"])
    assert reply.status_code == 400
    assert json.loads(reply.content)["error"] == "authorization_pending"


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"grant_type": "password", "device_code": "x"}, "unsupported_grant_type"),
        ({"device_code": ""}, "invalid_request"),
        ({"device_code": "ünknown"}, "invalid_request"),
        ({"device_code": "guessed"}, "expired_token"),
    ],
)
def test_invalid_token_request_is_rejected_with_its_error_code(
    client: Client, form: dict[str, str], error: str
) -> None:
    reply = poll(client, **form)
    assert reply.status_code == 400
    assert json.loads(reply.content)["error"] == error


def test_declared_text_is_stripped_of_control_characters_and_truncated(client: Client) -> None:
    request_code(client, {"model": "ti\u202eny\n\x1b[31m" + "y" * 500, "client_version": "0.3\t"})
    request = JoinRequest.objects.get()
    assert request.model.startswith("tiny[31m")
    assert len(request.model) == 200
    assert request.client_version == "0.3"


def test_request_with_a_node_token_asks_for_an_owner_of_that_node(client: Client) -> None:
    node, token = create_node()
    assert request_code(client, authorization=f"Bearer {token}").status_code == 200
    assert JoinRequest.objects.get().claimed == node


def test_request_with_an_invalid_token_is_rejected(client: Client) -> None:
    assert request_code(client, authorization="Bearer swarm_wrong").status_code == 401
    assert not JoinRequest.objects.exists()


def test_get_requests_are_not_allowed(client: Client) -> None:
    assert client.get(DEVICE_CODE_PATH).status_code == 405
    assert client.get(DEVICE_TOKEN_PATH).status_code == 405


def test_session_cookie_does_not_approve_a_client(client: Client) -> None:
    client.force_login(User.objects.create_user("olive"))
    given = json.loads(request_code(client).content)
    assert json.loads(poll(client, device_code=given["device_code"]).content)["error"]
