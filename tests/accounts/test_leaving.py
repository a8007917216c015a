"""Taking one's data along, and deleting the account."""

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
    """The token of Olive's node, which was judged once."""
    node, token = make_node("amber")
    Node.objects.filter(pk=node.pk).update(owner=olive, title="Kitchen laptop")
    season = make_season("Autumn")
    make_score(make_round(season, phase=Round.Phase.CLOSED), node, correct=12)
    Contribution.objects.create(node=node, season=season, published=777)
    return token


@pytest.fixture
def fresh(client: Client, olive: User) -> Client:
    """A browser in which Olive gave her password a moment ago."""
    client.post("/account/login/", {"login": "olive", "password": PASSWORD})
    client.post("/account/reauthenticate/", {"password": PASSWORD})
    return client


def add_webhook(owner: User) -> Channel:
    return add_channel(
        owner, kind="webhook", target=HOOK, events=["round.scored"], now=timezone.now()
    )


def make_stale(client: Client) -> None:
    """Let the password have been given ten minutes ago."""
    session = client.session
    for record in session[AUTHENTICATION_METHODS_SESSION_KEY]:
        record["at"] = time.time() - 600
    session.save()


def test_the_export_holds_account_nodes_scores_and_contributions(
    signed_in: Client, token: str
) -> None:
    answer = signed_in.get("/account/data/export.json")
    told: dict[str, Any] = answer.json()
    assert "attachment" in answer["Content-Disposition"]
    assert told["account"]["username"] == "olive"
    assert told["account"]["email"] == "olive@example.org"
    assert [(node["name"], node["title"]) for node in told["nodes"]] == [
        ("amber", "Kitchen laptop")
    ]
    assert [(score["season"], score["correct"]) for score in told["scores"]] == [("Autumn", 12)]
    assert [part["published"] for part in told["contributions"]] == [777]


def test_the_export_holds_where_notifications_go(signed_in: Client, olive: User) -> None:
    add_webhook(olive)
    told = signed_in.get("/account/data/export.json").json()["notifications"]
    assert [(channel["kind"], channel["target"]) for channel in told] == [("webhook", HOOK)]


def test_the_export_holds_no_secret(signed_in: Client, token: str, olive: User) -> None:
    kept = (token, Node.objects.get().token_hash, olive.password, add_webhook(olive).secret)
    text = signed_in.get("/account/data/export.json").content.decode()
    for secret in kept:
        assert secret not in text


def test_the_export_holds_nothing_of_others(signed_in: Client) -> None:
    make_node("oscars")
    assert "oscars" not in signed_in.get("/account/data/export.json").content.decode()


def test_a_deleted_account_leaves_the_record_without_an_owner(fresh: Client, token: str) -> None:
    fresh.post("/account/delete/")
    assert not User.objects.exists()
    node = Node.objects.get()
    assert (node.name, node.owner, node.title) == ("amber", None, "")
    assert Score.objects.get().correct == 12
    assert authenticate(token) is None
    assert fresh.get("/account/").status_code == 302


def test_the_page_says_what_stays_and_deletes_nothing(fresh: Client, token: str) -> None:
    page = fresh.get("/account/delete/").content.decode()
    assert "signed public record" in page
    assert User.objects.exists()


def test_the_password_is_asked_for_unless_it_was_given_lately(fresh: Client, token: str) -> None:
    make_stale(fresh)
    answer = fresh.post("/account/delete/")
    assert answer["Location"].startswith("/account/reauthenticate/")
    assert User.objects.exists()
    fresh.post(answer["Location"], {"password": PASSWORD}, follow=True)
    assert not User.objects.exists()


def test_an_account_without_a_password_is_deleted_after_a_new_sign_in(
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


def test_an_operator_whom_the_record_names_stays(fresh: Client, token: str, olive: User) -> None:
    Ruling.objects.create(
        node=Node.objects.get(),
        action="quarantine",
        actor=olive,
        reason="x",
        made_at=timezone.now(),
    )
    answer = fresh.post("/account/delete/")
    assert (answer.status_code, answer.json()["code"]) == (409, "account.kept")
    assert authenticate(token) is not None


@pytest.mark.django_db(transaction=True)
def test_an_account_that_leaves_takes_a_new_token_with_it(
    signed_in: Client, olive: User, token: str
) -> None:
    path = "/account/nodes/amber/token/"
    with committed_while_waited_for(signed_in.post, path) as answers:
        delete_account(olive)
    assert answers[0].result().status_code == 404
    assert Node.objects.get().is_revoked
