"""Every page answers, says what it is about, and keeps to the content security policy."""

import re

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from swarm_web.nodes.models import Node
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_node, make_round, make_score

PAGES = ["/", "/leaderboard/", "/rounds/", "/downloads/", "/join/", "/status/", "/api/docs"]
# A script that a browser would run: one without src that is not a block of data.
INLINE_SCRIPT = re.compile(r"<script(?![^>]*(\bsrc=|application/json))[^>]*>", re.IGNORECASE)
INLINE_HANDLER = re.compile(r"<[^>]+\son\w+=", re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES)
def test_pages_answer_before_the_first_season(db: None, client: Client, page: str) -> None:
    assert client.get(page).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_pages_answer_with_judged_nodes(judged: list[Node], client: Client, page: str) -> None:
    assert client.get(page).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_pages_carry_a_policy_and_no_inline_script(
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
def test_pages_name_no_other_site_for_their_parts(
    judged: list[Node], client: Client, page: str
) -> None:
    html = client.get(page).content.decode()
    assert not re.search(r"""(src|href)="(https?:)?//(?!arxiv\.org)""", html)


def test_the_leaderboard_lists_nodes_best_first(judged: list[Node], client: Client) -> None:
    html = client.get("/leaderboard/").content.decode()
    listed = re.findall(r'<tr data-node="([^"]+)"', html)
    assert listed == [node.name for node in judged]


def test_the_leaderboard_shows_score_interval_and_n(judged: list[Node], client: Client) -> None:
    html = client.get("/leaderboard/").content.decode()
    assert '<data value="1.0">1.000</data>' in html
    assert ".893–1.000, n = 32" in html


def test_connected_nodes_without_a_score_are_named_as_waiting(
    judged: list[Node], client: Client
) -> None:
    make_node("young-robin", last_seen=timezone.now())
    assert "young-robin" in client.get("/leaderboard/").content.decode()


def test_an_unknown_window_is_refused_with_a_code(judged: list[Node], client: Client) -> None:
    answer = client.get("/leaderboard/?window=decade")
    assert answer.status_code == 400
    assert answer.json()["code"] == "query.window"


def test_the_node_page_shows_its_standing(judged: list[Node], client: Client) -> None:
    html = client.get(judged[0].get_absolute_url()).content.decode()
    assert "is healthy." in html
    assert "It ranks 1–3 of 3." in html


def test_the_home_page_shows_the_round_and_connected_nodes(
    judged: list[Node], season: Season, client: Client
) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    html = client.get("/").content.decode()
    assert f"Round {judge_round.number}" in html
    assert "3 nodes connected" in html


@pytest.mark.parametrize("page", ["/nodes/nobody/", "/rounds/987654/", "/nowhere/"])
def test_what_does_not_exist_is_404_with_a_way_on(db: None, client: Client, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 404
    assert "/leaderboard/" in answer.content.decode()


def test_the_page_for_our_mistakes_needs_no_database() -> None:
    assert "Something broke on our side" in render_to_string("500.html")


def test_names_of_models_are_escaped(season: Season, client: Client) -> None:
    node, _ = make_node("sly-fox", model="<script>alert(1)</script>")
    html = client.get(node.get_absolute_url()).content.decode()
    assert "<script>alert" not in html


def test_the_leaderboard_names_no_leader_among_equals(client: Client, season: Season) -> None:
    judge_nodes(season, count=3)
    page = client.get("/leaderboard/").content.decode()
    assert "3 of 3 judged nodes share first place" in page


def test_the_leaderboard_names_a_leader_that_is_surely_ahead(
    client: Client, season: Season
) -> None:
    best, worst = (make_node(name, last_seen=timezone.now())[0] for name in ("amber", "bold"))
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    make_score(judge_round, best, correct=16)
    make_score(judge_round, worst, correct=0)
    page = client.get("/leaderboard/").content.decode()
    assert '<span class="name">amber</span> leads 2 judged nodes' in page
