"""Everybody can see whose rollouts are handed out less, why, since when and until when."""

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
    hold(node, season, level="withheld", charge="copying", bad=9, total=12)
    return node


def hold(node: Node, season: Season, **fields: object) -> None:
    times = {"since": NOW, "until": NOW + timedelta(hours=2)}
    Conduct.objects.create(node=node, season=season, **{**times, **fields})


def read(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


def test_a_nodes_page_tells_why_its_rollouts_are_withheld_and_what_helps(
    client: Client, amber: Node
) -> None:
    html = read(client, "/nodes/amber/")
    assert "Other nodes are given none of its rollouts." in html
    assert "9 of 12 rollouts were copies" in html
    assert "each rollout once." in html
    assert "it rises by one level" in html


def test_a_nodes_page_says_nothing_while_its_rollouts_are_handed_out_in_full(
    client: Client, season: Season
) -> None:
    bold, _ = make_node("bold")
    hold(bold, season, level="full", charge="copying")
    assert "handed out less" not in read(client, "/nodes/bold/")
    assert client.get("/api/v1/nodes/bold").json()["hand_out"] is None


def test_what_an_operator_decided_lasts_until_they_decide_again(
    client: Client, season: Season
) -> None:
    bold, _ = make_node("bold")
    hold(bold, season, level="withheld", charge="operator", pinned=True, until=None)
    html = read(client, "/nodes/bold/")
    assert "The operator decided so." in html
    assert "until the operator decides otherwise" in html


def test_a_share_that_the_judge_allows_is_told_in_percent(client: Client, season: Season) -> None:
    bold, _ = make_node("bold")
    hold(bold, season, level="lowered", charge="too_right", bad=16, total=16, allowed=0.48)
    html = read(client, "/nodes/bold/")
    assert "a quarter as often" in html
    assert "in 16 of 16 checked rollouts; its judge scores allow at most 48 %." in html


def test_the_api_tells_the_same(client: Client, amber: Node) -> None:
    told = client.get("/api/v1/nodes/amber").json()["hand_out"]
    assert (told["level"], told["charge"]) == ("withheld", "copying")
    assert "9 of 12" in told["why"]


def test_the_status_page_counts_and_lists_them_with_links(
    client: Client, season: Season, amber: Node
) -> None:
    hold(make_node("bold")[0], season, level="full", charge="refused")
    html = read(client, "/status/")
    assert "Rollouts of 1 node are handed out less" in html
    assert 'sends copies · withheld from other nodes</th><td class="num">1<' in html
    assert 'href="/nodes/amber/"' in html
    assert "bold" not in html


def test_the_status_page_of_an_honest_swarm_has_no_list(client: Client, season: Season) -> None:
    assert "handed out less" not in read(client, "/status/")


@pytest.mark.parametrize("charge", Conduct.Charge)
def test_a_nodes_page_says_of_each_charge_what_was_found_and_what_helps(
    client: Client, season: Season, charge: Conduct.Charge
) -> None:
    bold, _ = make_node("bold")
    hold(bold, season, level="lowered", charge=charge.value, bad=17, total=18, allowed=0.5)
    told = client.get("/api/v1/nodes/bold").json()["hand_out"]
    assert told["charge"] == charge
    for words in (told["why"], told["remedy"]):
        assert escape(words) in read(client, "/nodes/bold/")
        assert words.endswith(".")
