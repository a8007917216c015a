"""Test that badges have the leaderboard's values and the format of shields.io."""

from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from judge.services.oversight import quarantine_node
from swarm_web.nodes.models import Node
from tests.factories import make_node, make_round, make_score, publish

SVG = "{http://www.w3.org/2000/svg}"


def test_badge_of_a_node_has_the_format_of_shields_io(judged: list[Node], client: Client) -> None:
    name = judged[0].name
    shown = client.get(f"/nodes/{name}/badge.json").json()
    assert shown == {
        "schemaVersion": 1,
        "label": name,
        "message": "1.000 · rank 1–3 of 3",
        "color": "00619a",
        "labelColor": "1b1f24",
        "cacheSeconds": 300,
    }


def test_badge_has_the_numbers_of_the_api(judged: list[Node], client: Client) -> None:
    for item in client.get("/api/v1/leaderboard").json()["items"]:
        low, high = item["rank"]
        score = f"{item['score']:.3f}".removeprefix("0")
        shown = client.get(f"/nodes/{item['node']}/badge.json").json()["message"]
        assert shown == f"{score} · rank {low}–{high} of 3"


def test_badge_of_a_node_without_a_score_is_grey(season: Season, client: Client) -> None:
    make_node("young-robin")
    shown = client.get("/nodes/young-robin/badge.json").json()
    assert (shown["message"], shown["color"]) == ("not judged yet", "5d6670")


def test_badge_of_a_quarantined_node_has_no_rank(judged: list[Node], client: Client) -> None:
    quarantine_node(judged[0], reason="copies", actor=None, now=timezone.now())
    shown = client.get(f"/nodes/{judged[0].name}/badge.json").json()
    assert shown["message"] == "1.000 · not ranked"


def test_badge_of_a_base_node_is_labelled_untrained(season: Season, client: Client) -> None:
    base, _ = make_node("base-tiny", arm=Node.Arm.BASE)
    make_score(make_round(season, phase=Round.Phase.CLOSED), base, correct=4)
    publish(season)
    assert client.get("/nodes/base-tiny/badge.json").json()["message"] == ".250 · untrained model"


def test_badge_of_the_site_shows_nodes_and_round(judged: list[Node], client: Client) -> None:
    season = Season.objects.get()
    number = make_round(season, phase=Round.Phase.OPEN).number
    shown = client.get("/badge.json").json()
    assert (shown["label"], shown["message"]) == ("Murmuration", f"3 nodes · round {number}")


@pytest.mark.parametrize("path", ["/badge.svg", "/nodes/{node}/badge.svg"])
def test_svg_badge_is_an_image_with_a_label(judged: list[Node], client: Client, path: str) -> None:
    answer = client.get(path.format(node=judged[0].name))
    assert answer["Content-Type"] == "image/svg+xml"
    drawing = ElementTree.fromstring(answer.content)
    label, message = (text.text for text in drawing.iter(f"{SVG}text"))
    assert drawing.get("aria-label") == f"{label}: {message}"


def test_badge_allows_cross_origin_reads(judged: list[Node], client: Client) -> None:
    path = f"/nodes/{judged[0].name}/badge.json"
    shown = client.get(path, headers={"Origin": "https://elsewhere.example"})
    assert shown["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["badge.json", "badge.svg", "card.png"])
def test_unknown_node_returns_404(db: None, client: Client, path: str) -> None:
    assert client.get(f"/nodes/nobody/{path}").status_code == 404
