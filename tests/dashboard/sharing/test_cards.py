"""Test that preview cards have the required size and are drawn only after a change."""

import io
from typing import Any
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.test import Client
from PIL import Image

from judge.models import Round, Season
from swarm_web.dashboard.sharing import cards
from swarm_web.dashboard.sharing.facts import NodeFacts, SiteFacts
from swarm_web.nodes.models import Node
from tests.factories import make_node, make_round, make_score, publish

SWARM_BLUE, ISOLATED_RED = (0, 114, 178), (213, 94, 0)
JUDGED = NodeFacts(
    name="amber-quiet-heron",
    model="tiny",
    arm="swarm",
    score=0.4,
    interval=(0.3, 0.5),
    n=64,
    rank=(3, 5),
    ranked=41,
    unranked="",
    recent=(0.2, 0.3, 0.4),
)


def open_card(png: bytes) -> Image.Image:
    card = Image.open(io.BytesIO(png))
    card.load()
    assert (card.format, card.size) == ("PNG", (1200, 630))
    return card.convert("RGB")


def shows(card: Image.Image, colour: tuple[int, int, int]) -> bool:
    """Return whether a card has a dot of about this colour."""
    data = card.resize((400, 210)).get_flattened_data()
    near = (
        pixel
        for pixel in data
        if isinstance(pixel, tuple)
        and all(abs(a - b) < 12 for a, b in zip(pixel, colour, strict=True))
    )
    return sum(1 for _ in near) > 20


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/card.png", "/nodes/{node}/card.png"])
def test_card_is_a_png_of_the_required_size(judged: list[Node], client: Client, path: str) -> None:
    answer = client.get(path.format(node=judged[0].name))
    assert answer["Content-Type"] == "image/png"
    open_card(answer.content)
    assert len(answer.content) < 100_000


def test_card_has_the_colour_of_the_arm() -> None:
    card = open_card(cards.draw_node_card(JUDGED, site="Murmuration"))
    assert shows(card, SWARM_BLUE)
    assert not shows(card, ISOLATED_RED)


class ReadableCanvas(cards.Canvas):
    """A canvas that also collects the texts written on it."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def write(self, at: cards.Point, text: str, **style: Any) -> float:
        self.texts.append(text)
        return super().write(at, text, **style)


def test_line_of_recent_scores_names_the_rounds_that_were_scored() -> None:
    cards._draw_recent(canvas := ReadableCanvas(), JUDGED.recent, colour=cards.INK)
    assert canvas.texts == ["last 3 scored rounds"]


def test_node_without_a_score_has_a_card(season: Season, client: Client) -> None:
    make_node("young-robin")
    open_card(client.get("/nodes/young-robin/card.png").content)


def test_site_without_a_season_has_a_card(db: None, client: Client) -> None:
    open_card(client.get("/card.png").content)


def test_long_names_do_not_cross_the_margin_of_the_card() -> None:
    facts = SiteFacts("N" * 60, "S" * 80, 128, 41, 38, (("n" * 64, 0.5, (0.4, 0.6)),) * 3)
    edge = open_card(cards.draw_site_card(facts)).crop((1150, 340, 1200, 630))
    assert edge.getcolors() is not None
    assert len(edge.getcolors() or []) == 1, "nothing but background beyond the margin"


def test_logo_of_the_cards_equals_the_logo_of_the_pages() -> None:
    drawing = ElementTree.parse(settings.BASE_DIR / "static" / "img" / "logo.svg")
    circles = drawing.findall("{http://www.w3.org/2000/svg}circle")
    assert len(cards.read_logo()) == len(circles) > 0


@pytest.mark.slow
def test_unchanged_card_returns_304_without_being_drawn(judged: list[Node], client: Client) -> None:
    path = f"/nodes/{judged[0].name}/card.png"
    etag = client.get(path)["ETag"]
    drawn = cards.draw_node_card.cache_info().misses
    again = client.get(path, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert cards.draw_node_card.cache_info().misses == drawn


@pytest.mark.slow
def test_card_changes_with_the_score_of_the_node(
    judged: list[Node], season: Season, client: Client
) -> None:
    path = f"/nodes/{judged[0].name}/card.png"
    before = client.get(path)
    make_score(make_round(season, phase=Round.Phase.CLOSED), judged[0], correct=1)
    publish(season)
    after = client.get(path, headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert after.content != before.content


@pytest.mark.parametrize(("path", "card"), [("/", "/card.png"), ("/nodes/{node}/", None)])
def test_page_has_open_graph_tags_with_its_card(
    judged: list[Node], client: Client, path: str, card: str | None
) -> None:
    page = path.format(node=judged[0].name)
    html = client.get(page).content.decode()
    shown = f"{settings.SITE_URL}{card or f'{page}card.png'}"
    assert f'<meta property="og:image" content="{shown}">' in html
    assert '<meta name="twitter:card" content="summary_large_image">' in html
