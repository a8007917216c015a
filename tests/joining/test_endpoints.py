"""What clients ask over HTTP."""

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
    """A client, which has no cookies and checks nothing for Django."""
    return Client(enforce_csrf_checks=True)


def ask(client: Client, form: dict[str, str] | None = None, **headers: Any) -> HttpResponse:
    return client.post(DEVICE_CODE_PATH, form or {}, headers=headers)  # type: ignore[return-value]


def poll(client: Client, **form: str) -> HttpResponse:
    form = {"grant_type": GRANT_TYPE} | form
    return client.post(DEVICE_TOKEN_PATH, form)  # type: ignore[return-value]


def test_a_code_comes_with_the_page_that_takes_it(client: Client) -> None:
    given = json.loads(ask(client).content)
    assert given["verification_uri"] == "http://testserver/device/"
    assert given["verification_uri_complete"].endswith(f"?code={given['user_code']}")
    assert (given["expires_in"], given["interval"]) == (900, 2)


def test_no_reply_is_ever_kept_by_a_cache(client: Client) -> None:
    assert ask(client)["Cache-Control"] == "no-store"
    assert poll(client, device_code="x")["Cache-Control"] == "no-store"


def test_a_waiting_client_reads_why_in_the_words_of_the_rfc(client: Client) -> None:
    given = json.loads(ask(client).content)
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
def test_a_wrong_request_is_refused_with_its_name(
    client: Client, form: dict[str, str], error: str
) -> None:
    reply = poll(client, **form)
    assert reply.status_code == 400
    assert json.loads(reply.content)["error"] == error


def test_what_a_client_declares_cannot_steer_a_page(client: Client) -> None:
    ask(client, {"model": "ti\u202eny\n\x1b[31m" + "y" * 500, "client_version": "0.3\t"})
    request = JoinRequest.objects.get()
    assert request.model.startswith("tiny[31m")
    assert len(request.model) == 200
    assert request.client_version == "0.3"


def test_a_nodes_token_asks_for_an_owner_of_that_node(client: Client) -> None:
    node, token = create_node()
    assert ask(client, authorization=f"Bearer {token}").status_code == 200
    assert JoinRequest.objects.get().claimed == node


def test_a_wrong_token_is_not_taken_for_none(client: Client) -> None:
    assert ask(client, authorization="Bearer swarm_wrong").status_code == 401
    assert not JoinRequest.objects.exists()


def test_reading_is_no_asking(client: Client) -> None:
    assert client.get(DEVICE_CODE_PATH).status_code == 405
    assert client.get(DEVICE_TOKEN_PATH).status_code == 405


def test_a_session_on_the_site_gives_a_client_nothing(client: Client) -> None:
    client.force_login(User.objects.create_user("olive"))
    given = json.loads(ask(client).content)
    assert json.loads(poll(client, device_code=given["device_code"]).content)["error"]
