"""Test the public profile of an owner."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from judge.models import Season
from swarm_web.accounts.services import show_profile
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import make_node, make_round, make_score, make_season, publish

pytestmark = pytest.mark.django_db


@pytest.fixture
def season() -> Season:
    return make_season("Autumn")


@pytest.fixture
def amber(olive: User, season: Season) -> Node:
    """A node of olive, judged in one round."""
    node, _ = make_node("amber")
    Node.objects.filter(pk=node.pk).update(owner=olive, title="Kitchen laptop")
    make_score(make_round(season, phase=season.rounds.model.Phase.CLOSED), node, correct=12)
    Contribution.objects.create(node=node, season=season, published=777, used_by_others=56)
    publish(season)
    return Node.objects.get(pk=node.pk)


def publish_profile(browser: Client) -> None:
    browser.post("/account/data/", {"is_public": "on"})


def read(client: Client, path: str) -> Any:
    return client.get(path).content.decode()


def test_owner_is_hidden_by_default(client: Client, amber: Node) -> None:
    assert client.get("/owners/olive/").status_code == 404
    assert "olive" not in read(client, "/nodes/amber/")


def test_public_profile_shows_nodes_seasons_and_contributions(
    client: Client, signed_in: Client, amber: Node
) -> None:
    publish_profile(signed_in)
    page = read(Client(), "/owners/olive/")
    for shown in ("Kitchen laptop", "amber", "Autumn", "777", "56"):
        assert shown in page
    assert "example.org" not in page


def test_node_page_links_to_a_public_profile(signed_in: Client, amber: Node) -> None:
    publish_profile(signed_in)
    assert 'href="/owners/olive/"' in read(Client(), "/nodes/amber/")


def test_profile_can_be_hidden_again(signed_in: Client, amber: Node) -> None:
    publish_profile(signed_in)
    signed_in.post("/account/data/", {})
    assert Client().get("/owners/olive/").status_code == 404


def test_inactive_account_has_no_profile(client: Client, olive: User, amber: Node) -> None:
    show_profile(olive, is_public=True)
    User.objects.update(is_active=False)
    assert client.get("/owners/olive/").status_code == 404


def test_owner_without_nodes_has_a_profile(client: Client, olive: User) -> None:
    show_profile(olive, is_public=True)
    assert client.get("/owners/olive/").status_code == 200


@pytest.mark.parametrize("name", ["nobody", "%00", "..%2f"])
def test_unknown_owner_is_not_found(client: Client, name: str) -> None:
    assert client.get(f"/owners/{name}/").status_code == 404
