"""Test the export of an account's data and the deletion of an account."""

import time
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from judge.models import Round, Ruling, Score
from swarm_web.accounts.services import delete_account
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate
from swarm_web.notifications.models import Channel
from swarm_web.notifications.services.channels import add_channel
from swarm_web.relay.models import Contribution
from tests.accounts.conftest import PASSWORD
from tests.factories import make_node, make_round, make_score, make_season
from tests.races import committed_while_waited_for

HOOK = "https://example.org/hook"

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(olive: User) -> str:
    """The token of olive's node, which was judged once."""
    node, token = make_node("amber")
    Node.objects.filter(pk=node.pk).update(owner=olive, title="Kitchen laptop")
    season = make_season("Autumn")
    make_score(make_round(season, phase=Round.Phase.CLOSED), node, correct=12)
    Contribution.objects.create(node=node, season=season, published=777)
    return token


@pytest.fixture
def recently_authenticated(client: Client, olive: User) -> Client:
    """A client in which olive has just entered her password."""
    client.post("/account/login/", {"login": "olive", "password": PASSWORD})
    client.post("/account/reauthenticate/", {"password": PASSWORD})
    return client


def add_webhook(owner: User) -> Channel:
    return add_channel(
        owner, kind="webhook", target=HOOK, events=["round.scored"], now=timezone.now()
    )


def expire_authentication(client: Client) -> None:
    """Set the time of the authentication to ten minutes ago."""
    session = client.session
    for record in session[AUTHENTICATION_METHODS_SESSION_KEY]:
        record["at"] = time.time() - 600
    session.save()


def test_export_contains_account_nodes_scores_and_contributions(
    signed_in: Client, token: str
) -> None:
    answer = signed_in.get("/account/data/export.json")
    exported: dict[str, Any] = answer.json()
    assert "attachment" in answer["Content-Disposition"]
    assert exported["account"]["username"] == "olive"
    assert exported["account"]["email"] == "olive@example.org"
    assert [(node["name"], node["title"]) for node in exported["nodes"]] == [
        ("amber", "Kitchen laptop")
    ]
    assert [(score["season"], score["correct"]) for score in exported["scores"]] == [("Autumn", 12)]
    assert [part["published"] for part in exported["contributions"]] == [777]


def test_export_contains_notification_channels(signed_in: Client, olive: User) -> None:
    add_webhook(olive)
    exported = signed_in.get("/account/data/export.json").json()["notifications"]
    assert [(channel["kind"], channel["target"]) for channel in exported] == [("webhook", HOOK)]


def test_export_contains_no_secret(signed_in: Client, token: str, olive: User) -> None:
    secrets = (token, Node.objects.get().token_hash, olive.password, add_webhook(olive).secret)
    text = signed_in.get("/account/data/export.json").content.decode()
    for secret in secrets:
        assert secret not in text


def test_export_contains_no_nodes_of_other_accounts(signed_in: Client) -> None:
    make_node("oscars")
    assert "oscars" not in signed_in.get("/account/data/export.json").content.decode()


def test_deleting_an_account_keeps_scores_and_removes_owner_title_and_token(
    recently_authenticated: Client, token: str
) -> None:
    recently_authenticated.post("/account/delete/")
    assert not User.objects.exists()
    node = Node.objects.get()
    assert (node.name, node.owner, node.title) == ("amber", None, "")
    assert Score.objects.get().correct == 12
    assert authenticate(token) is None
    assert recently_authenticated.get("/account/").status_code == 302


def test_get_of_delete_page_explains_what_remains_and_deletes_nothing(
    recently_authenticated: Client, token: str
) -> None:
    page = recently_authenticated.get("/account/delete/").content.decode()
    assert "signed public record" in page
    assert User.objects.exists()


def test_deletion_requires_a_recent_password(recently_authenticated: Client, token: str) -> None:
    expire_authentication(recently_authenticated)
    answer = recently_authenticated.post("/account/delete/")
    assert answer["Location"].startswith("/account/reauthenticate/")
    assert User.objects.exists()
    recently_authenticated.post(answer["Location"], {"password": PASSWORD}, follow=True)
    assert not User.objects.exists()


def test_deletion_without_a_password_requires_a_recent_login(
    signed_in: Client, olive: User
) -> None:
    olive.set_unusable_password()
    olive.save()
    signed_in.force_login(olive)
    User.objects.update(last_login=timezone.now() - timedelta(minutes=6))
    assert signed_in.post("/account/delete/").status_code == 403
    User.objects.update(last_login=timezone.now())
    signed_in.post("/account/delete/")
    assert not User.objects.exists()


def test_account_of_an_operator_with_rulings_cannot_be_deleted(
    recently_authenticated: Client, token: str, olive: User
) -> None:
    Ruling.objects.create(
        node=Node.objects.get(),
        action="quarantine",
        actor=olive,
        reason="x",
        made_at=timezone.now(),
    )
    answer = recently_authenticated.post("/account/delete/")
    assert (answer.status_code, answer.json()["code"]) == (409, "account.kept")
    assert authenticate(token) is not None


@pytest.mark.django_db(transaction=True)
def test_token_rotated_while_the_account_is_deleted_is_revoked(
    signed_in: Client, olive: User, token: str
) -> None:
    path = "/account/nodes/amber/token/"
    with committed_while_waited_for(signed_in.post, path) as answers:
        delete_account(olive)
    assert answers[0].result().status_code == 404
    assert Node.objects.get().is_revoked
