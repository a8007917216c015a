"""Test that every page works, has a content security policy, and conforms to it."""

import copy
import re

import pytest
from django.test import Client

from judge.models import Round, Season
from swarm_web.nodes.models import Node
from tests.dashboard.pages.test_empty_site import PAGES
from tests.factories import make_node, make_round

# A script that a browser would run: without src, and not a block of data.
INLINE_SCRIPT = re.compile(r"<script(?![^>]*(\bsrc=|application/json))[^>]*>", re.IGNORECASE)
INLINE_HANDLER = re.compile(r"<[^>]+\son\w+=", re.IGNORECASE)


@pytest.fixture
def judged(judged_once: list[Node], db: None) -> list[Node]:
    return copy.deepcopy(judged_once)


@pytest.fixture
def season(judged: list[Node]) -> Season:
    return Season.objects.get()


@pytest.mark.parametrize("page", PAGES)
def test_page_works_with_judged_nodes(judged: list[Node], client: Client, page: str) -> None:
    assert client.get(page).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_page_has_a_security_policy_and_no_inline_script(
    judged: list[Node], client: Client, page: str
) -> None:
    answer = client.get(page)
    html = answer.content.decode()
    policy = answer.headers["Content-Security-Policy"]

    assert "script-src 'self'" in policy
    assert "default-src 'self'" in policy
    assert not INLINE_SCRIPT.search(html)
    assert not INLINE_HANDLER.search(html)


@pytest.mark.parametrize("page", PAGES)
def test_page_loads_nothing_from_other_sites(judged: list[Node], client: Client, page: str) -> None:
    html = client.get(page).content.decode()
    assert not re.search(r"""(src=|<link[^>]+href=)"(https?:)?//""", html)


def test_home_page_shows_the_round_and_connected_nodes(
    judged: list[Node], season: Season, client: Client
) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    html = client.get("/").content.decode()
    assert f"Round {judge_round.number}" in html
    assert "3 nodes connected" in html


@pytest.mark.parametrize("page", ["/nodes/nobody/", "/rounds/987654/", "/nowhere/"])
def test_missing_page_returns_404_with_links(db: None, client: Client, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 404
    assert "/leaderboard/" in answer.content.decode()


def test_model_names_are_escaped(season: Season, client: Client) -> None:
    node, _ = make_node("sly-fox", model="<script>alert(1)</script>")
    html = client.get(node.get_absolute_url()).content.decode()
    assert "<script>alert" not in html


def test_browser_receives_an_html_error_page(db: None, client: Client) -> None:
    accepted = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = client.get("/leaderboard/?window=year", headers=accepted)
    html = answer.content.decode()
    assert (answer.status_code, answer.headers["Content-Type"][:9]) == (400, "text/html")
    assert "query.window" in html
    assert "Use one of" in html
    assert 'class="button" href="/leaderboard/"' in html


@pytest.mark.parametrize("accepted", ["*/*", "application/json"])
def test_program_receives_a_json_error(db: None, client: Client, accepted: str) -> None:
    answer = client.get("/leaderboard/?window=year", headers={"Accept": accepted})
    assert answer.json()["code"] == "query.window"
    assert "Accept" in answer.headers["Vary"]
