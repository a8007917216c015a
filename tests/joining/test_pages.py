"""Where a person decides about a client."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from swarm_web.joining import pages
from swarm_web.joining.models import JoinRequest
from swarm_web.joining.services import JoinRequester, collect, request_node, request_owner
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node

pytestmark = pytest.mark.django_db(transaction=True)

ASKER = JoinRequester(network="127.0.0.1", client_version="0.3.0", model="<b>tiny</b>")


@pytest.fixture
def olive() -> User:
    return User.objects.create_user("olive")


@pytest.fixture
def browser(olive: User) -> Client:
    """Olive's browser."""
    client = Client()
    client.force_login(olive)
    return client


def ask() -> tuple[JoinRequest, str]:
    return request_node(ASKER, now=timezone.now())


def decide(browser: Client, request: JoinRequest, **form: str) -> tuple[int, str]:
    answer = browser.post(
        "/device/", {"code": str(request), "decision": "approve"} | form, follow=True
    )
    return answer.status_code, answer.content.decode()


def test_a_stranger_signs_in_first_and_keeps_the_code() -> None:
    answer = Client().get("/device/?code=BCDF-GHJK")
    assert answer.status_code == 302
    assert "code%3DBCDF-GHJK" in answer["Location"]


def test_looking_at_a_code_decides_nothing(browser: Client) -> None:
    request, _ = ask()
    page = browser.get(f"/device/?code={request}").content.decode()
    assert str(request) in page
    assert "From your network address" in page
    request.refresh_from_db()
    assert request.is_open(now=timezone.now())


def test_what_the_client_declares_is_no_markup(browser: Client) -> None:
    request, _ = ask()
    assert "&lt;b&gt;tiny" in browser.get(f"/device/?code={request}").content.decode()


def test_another_network_is_pointed_out(browser: Client) -> None:
    request, _ = request_node(JoinRequester(network="192.0.2.9"), now=timezone.now())
    page = browser.get(f"/device/?code={request}").content.decode()
    assert "From a different network address" in page


def test_approving_makes_a_node_with_the_chosen_name(browser: Client, olive: User) -> None:
    request, secret = ask()
    status, page = decide(browser, request, name="heron")
    assert status == 200
    assert "heron" in page
    assert Node.objects.get(name="heron").owner == olive
    assert collect(secret, now=timezone.now()).node == "heron"


def test_without_a_name_the_site_draws_one(browser: Client) -> None:
    request, _ = ask()
    decide(browser, request)
    assert Node.objects.get().name.count("-") == 2


@pytest.mark.parametrize("name", ["two words", "heron", "Heron", "attic", "ü", "x" * 65])
def test_a_name_that_cannot_be_had_is_asked_for_again(browser: Client, name: str) -> None:
    create_node(name="heron", title="Attic")
    request, _ = ask()
    _, page = decide(browser, request, name=name)
    assert "errorlist" in page
    assert Node.objects.count() == 1
    request.refresh_from_db()
    assert request.is_open(now=timezone.now())


def test_one_of_ones_own_nodes_continues(browser: Client, olive: User) -> None:
    node, _ = create_node(name="heron", owner=olive)
    request, secret = ask()
    decide(browser, request, node="heron")
    assert collect(secret, now=timezone.now()).node == node.name


def test_a_node_of_another_person_cannot_be_chosen(browser: Client, olive: User) -> None:
    create_node(name="own", owner=olive)
    create_node(name="heron", owner=User.objects.create_user("other"))
    request, _ = ask()
    decide(browser, request, node="heron")
    request.refresh_from_db()
    assert request.is_open(now=timezone.now())


def test_a_blocked_node_cannot_get_around_its_block(browser: Client, olive: User) -> None:
    node, _ = create_node(name="heron", owner=olive)
    Node.objects.filter(pk=node.pk).update(blocked=True)
    request, _ = ask()
    decide(browser, request, node="heron")
    assert Node.objects.get(name="heron").token_hash == node.token_hash


def test_declining_ends_the_request(browser: Client) -> None:
    request, _ = ask()
    decide(browser, request, decision="deny")
    request.refresh_from_db()
    assert request.decision == JoinRequest.Decision.DENIED


def test_claiming_makes_the_person_the_owner(browser: Client, olive: User) -> None:
    _, token = create_node(name="heron")
    request, _ = request_owner(ASKER, token, now=timezone.now())
    decide(browser, request)
    assert Node.objects.get(name="heron").owner == olive


def test_a_code_that_was_used_says_so(browser: Client) -> None:
    request, _ = ask()
    decide(browser, request)
    status, page = decide(browser, request)
    assert status == 404
    assert "This code is unknown, used or expired" in page


def test_an_expired_code_says_so(browser: Client) -> None:
    request, _ = request_node(ASKER, now=timezone.now() - timedelta(minutes=16))
    assert browser.get(f"/device/?code={request}").status_code == 404


def test_codes_cannot_be_guessed_without_end(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_WRONG_CODES", 2)
    answers = [browser.get("/device/?code=XXXX-XXXX").status_code for _ in range(3)]
    assert answers == [404, 404, 429]


def test_another_site_cannot_approve_in_ones_name(olive: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olive)
    request, _ = ask()
    assert decide(browser, request)[0] == 403


def test_the_page_after_it_is_for_the_owner_only(browser: Client) -> None:
    create_node(name="heron", owner=User.objects.create_user("other"))
    assert browser.get("/device/approved/heron/").status_code == 404


def test_the_page_after_it_tells_when_the_node_is_there(browser: Client, olive: User) -> None:
    node, _ = create_node(name="heron", owner=olive)
    assert "waiting" in browser.get("/device/approved/heron/").content.decode()
    Node.objects.filter(pk=node.pk).update(last_seen=timezone.now())
    assert "has joined" in browser.get("/device/approved/heron/").content.decode()
