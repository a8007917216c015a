"""Test that pages show nodes with a lowered hand-out weight, with reason and duration."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from judge.models import Season
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct
from tests.factories import make_node, make_season

NOW = timezone.now()

pytestmark = pytest.mark.django_db


@pytest.fixture
def season(db: None) -> Season:
    return make_season()


@pytest.fixture
def amber(season: Season) -> Node:
    node, _ = make_node("amber")
    restrict(node, season, level="withheld", charge="copying", bad=9, total=12)
    return node


def restrict(node: Node, season: Season, **fields: object) -> None:
    times = {"since": NOW, "until": NOW + timedelta(hours=2)}
    Conduct.objects.create(node=node, season=season, **{**times, **fields})


def read(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


def test_node_page_shows_why_rollouts_are_withheld_and_the_remedy(
    client: Client, amber: Node
) -> None:
    html = read(client, "/nodes/amber/")
    assert "Its rollouts are not delivered to other nodes." in html
    assert "9 of 12 rollouts were copies" in html
    assert "each rollout once." in html
    assert "the restriction is eased by one level" in html


def test_node_page_does_not_mention_a_full_hand_out_weight(client: Client, season: Season) -> None:
    bold, _ = make_node("bold")
    restrict(bold, season, level="full", charge="copying")
    assert "delivered less often" not in read(client, "/nodes/bold/")
    assert client.get("/api/v1/nodes/bold").json()["hand_out"] is None


def test_decision_of_the_operator_has_no_end(client: Client, season: Season) -> None:
    bold, _ = make_node("bold")
    restrict(bold, season, level="withheld", charge="operator", pinned=True, until=None)
    html = read(client, "/nodes/bold/")
    assert "The operator decided this." in html
    assert "until the operator lifts it" in html


def test_allowed_share_of_solved_completions_is_shown_in_percent(
    client: Client, season: Season
) -> None:
    bold, _ = make_node("bold")
    restrict(bold, season, level="lowered", charge="too_right", bad=16, total=16, allowed=0.48)
    html = read(client, "/nodes/bold/")
    assert "a quarter as often" in html
    assert "in 16 of 16 checked rollouts; its judge scores allow at most 48 %." in html


def test_api_contains_the_hand_out_weight(client: Client, amber: Node) -> None:
    body = client.get("/api/v1/nodes/amber").json()["hand_out"]
    assert (body["level"], body["charge"]) == ("withheld", "copying")
    assert "9 of 12" in body["why"]


def test_status_page_counts_and_lists_restricted_nodes_with_links(
    client: Client, season: Season, amber: Node
) -> None:
    restrict(make_node("bold")[0], season, level="full", charge="refused")
    html = read(client, "/status/")
    assert "Rollouts from 1 node are delivered less often" in html
    assert 'shares copies · withheld from other nodes</th><td class="num">1<' in html
    assert 'href="/nodes/amber/"' in html
    assert "bold" not in html


def test_status_page_without_restricted_nodes_has_no_list(client: Client, season: Season) -> None:
    assert "delivered less often" not in read(client, "/status/")


@pytest.mark.parametrize("charge", Conduct.Charge)
def test_node_page_shows_finding_and_remedy_for_each_charge(
    client: Client, season: Season, charge: Conduct.Charge
) -> None:
    bold, _ = make_node("bold")
    restrict(bold, season, level="lowered", charge=charge.value, bad=17, total=18, allowed=0.5)
    body = client.get("/api/v1/nodes/bold").json()["hand_out"]
    assert body["charge"] == charge
    for words in (body["why"], body["remedy"]):
        assert escape(words) in read(client, "/nodes/bold/")
        assert words.endswith(".")
