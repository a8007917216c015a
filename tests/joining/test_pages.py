"""Test the pages on which a person approves or declines a client."""

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

REQUESTER = JoinRequester(network="127.0.0.1", client_version="0.3.0", model="<b>tiny</b>")


@pytest.fixture
def olive() -> User:
    return User.objects.create_user("olive")


@pytest.fixture
def browser(olive: User) -> Client:
    """A client that is signed in as olive."""
    client = Client()
    client.force_login(olive)
    return client


def request_code() -> tuple[JoinRequest, str]:
    return request_node(REQUESTER, now=timezone.now())


def decide(browser: Client, request: JoinRequest, **form: str) -> tuple[int, str]:
    answer = browser.post(
        "/device/", {"code": str(request), "decision": "approve"} | form, follow=True
    )
    return answer.status_code, answer.content.decode()


def test_login_redirect_preserves_the_code() -> None:
    answer = Client().get("/device/?code=BCDF-GHJK")
    assert answer.status_code == 302
    assert "code%3DBCDF-GHJK" in answer["Location"]


def test_viewing_a_code_does_not_decide_it(browser: Client) -> None:
    request, _ = request_code()
    page = browser.get(f"/device/?code={request}").content.decode()
    assert str(request) in page
    assert "From your network address" in page
    request.refresh_from_db()
    assert request.is_open(now=timezone.now())


def test_text_declared_by_the_client_is_escaped(browser: Client) -> None:
    request, _ = request_code()
    assert "&lt;b&gt;tiny" in browser.get(f"/device/?code={request}").content.decode()


def test_page_shows_the_model_of_a_client_that_names_no_version(browser: Client) -> None:
    requester = JoinRequester(network="127.0.0.1", model="tiny-model")
    request, _ = request_node(requester, now=timezone.now())
    assert "tiny-model" in browser.get(f"/device/?code={request}").content.decode()


def test_page_warns_if_the_request_came_from_another_network(browser: Client) -> None:
    request, _ = request_node(JoinRequester(network="192.0.2.9"), now=timezone.now())
    page = browser.get(f"/device/?code={request}").content.decode()
    assert "From a different network address" in page


def test_approving_creates_a_node_with_the_chosen_name(browser: Client, olive: User) -> None:
    request, secret = request_code()
    status, page = decide(browser, request, name="heron")
    assert status == 200
    assert "heron" in page
    assert Node.objects.get(name="heron").owner == olive
    assert collect(secret, now=timezone.now()).node == "heron"


def test_name_is_drawn_if_none_is_given(browser: Client) -> None:
    request, _ = request_code()
    decide(browser, request)
    assert Node.objects.get().name.count("-") == 2


@pytest.mark.parametrize("name", ["two words", "heron", "Heron", "attic", "ü", "x" * 65])
def test_invalid_or_taken_name_is_rejected_and_the_code_stays_open(
    browser: Client, name: str
) -> None:
    create_node(name="heron", title="Attic")
    request, _ = request_code()
    _, page = decide(browser, request, name=name)
    assert "errorlist" in page
    assert Node.objects.count() == 1
    request.refresh_from_db()
    assert request.is_open(now=timezone.now())


@pytest.mark.parametrize("title", ["Ca\u0301f\u00e9-1", "CAFE\u20111", "\uff23afe-1"])
def test_plain_form_of_a_title_is_rejected_as_a_name(browser: Client, title: str) -> None:
    create_node(name="heron", title=title)
    request, _ = request_code()
    _, page = decide(browser, request, name="Cafe-1")
    assert "errorlist" in page
    assert Node.objects.count() == 1


def test_own_node_can_be_chosen_to_continue(browser: Client, olive: User) -> None:
    node, _ = create_node(name="heron", owner=olive)
    request, secret = request_code()
    decide(browser, request, node="heron")
    assert collect(secret, now=timezone.now()).node == node.name


def test_node_of_another_account_cannot_be_chosen(browser: Client, olive: User) -> None:
    create_node(name="own", owner=olive)
    create_node(name="heron", owner=User.objects.create_user("other"))
    request, _ = request_code()
    decide(browser, request, node="heron")
    request.refresh_from_db()
    assert request.is_open(now=timezone.now())


def test_blocked_node_cannot_be_chosen(browser: Client, olive: User) -> None:
    node, _ = create_node(name="heron", owner=olive)
    Node.objects.filter(pk=node.pk).update(blocked=True)
    request, _ = request_code()
    decide(browser, request, node="heron")
    assert Node.objects.get(name="heron").token_hash == node.token_hash


def test_declining_denies_the_request(browser: Client) -> None:
    request, _ = request_code()
    decide(browser, request, decision="deny")
    request.refresh_from_db()
    assert request.decision == JoinRequest.Decision.DENIED


def test_claiming_makes_the_account_the_owner(browser: Client, olive: User) -> None:
    _, token = create_node(name="heron")
    request, _ = request_owner(REQUESTER, token, now=timezone.now())
    decide(browser, request)
    assert Node.objects.get(name="heron").owner == olive


def test_used_code_returns_404_with_an_explanation(browser: Client) -> None:
    request, _ = request_code()
    decide(browser, request)
    status, page = decide(browser, request)
    assert status == 404
    assert "This code is unknown, used or expired" in page


def test_expired_code_returns_404(browser: Client) -> None:
    request, _ = request_node(REQUESTER, now=timezone.now() - timedelta(minutes=16))
    assert browser.get(f"/device/?code={request}").status_code == 404


def test_too_many_wrong_codes_are_rejected_with_429(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_WRONG_CODES", 2)
    answers = [browser.get("/device/?code=XXXX-XXXX").status_code for _ in range(3)]
    assert answers == [404, 404, 429]


def test_right_code_is_rejected_after_too_many_wrong_codes(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_WRONG_CODES", 2)
    request, _ = request_code()
    for _ in range(2):
        browser.get("/device/?code=XXXX-XXXX")
    assert browser.get(f"/device/?code={request}").status_code == 429


def test_right_codes_do_not_count_as_wrong(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_WRONG_CODES", 1)
    request, _ = request_code()
    answers = [browser.get(f"/device/?code={request}").status_code for _ in range(3)]
    assert answers == [200, 200, 200]


def test_approval_without_csrf_token_is_rejected(olive: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olive)
    request, _ = request_code()
    assert decide(browser, request)[0] == 403


def test_approved_page_is_accessible_only_to_the_owner(browser: Client) -> None:
    create_node(name="heron", owner=User.objects.create_user("other"))
    assert browser.get("/device/approved/heron/").status_code == 404


def test_approved_page_shows_whether_the_node_has_joined(browser: Client, olive: User) -> None:
    node, _ = create_node(name="heron", owner=olive)
    assert "waiting" in browser.get("/device/approved/heron/").content.decode()
    Node.objects.filter(pk=node.pk).update(last_seen=timezone.now())
    assert "has joined" in browser.get("/device/approved/heron/").content.decode()
