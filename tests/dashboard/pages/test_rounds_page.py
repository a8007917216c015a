"""Test the list of rounds: by season, in pages, with turnout, spread and reason if void."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from judge.services.oversight import void_round
from judge.services.seasons import end_season
from swarm_web.dashboard.reports import rounds as report
from swarm_web.nodes.models import Node
from tests.factories import make_node, make_round, make_score, make_season, publish


@pytest.fixture
def two_per_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAGE_ROUNDS", 2)


def numbers_in(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'<td class="num"><a href="/rounds/(\d+)/"', html)]


def follow(client: Client, html: str, rel: str) -> str:
    (query,) = re.findall(rf'<a rel="{rel}" href="(\?[^"]*)"', html)
    return client.get("/rounds/" + query.replace("&amp;", "&")).content.decode()


def test_page_shows_turnout_and_spread(judged: list[Node], client: Client) -> None:
    html = client.get("/rounds/").content.decode()
    assert '<td class="num">3 of 3</td>' in html
    assert ".938 <span>(.906–.969)</span>" in html
    assert '<td class="num">1.000</td>' in html


def test_pages_link_to_each_other_in_both_directions(
    season: Season, client: Client, two_per_page: None
) -> None:
    made = [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(5)][::-1]
    first = client.get("/rounds/").content.decode()
    second = follow(client, first, "next")
    third = follow(client, second, "next")
    assert [numbers_in(page) for page in (first, second, third)] == [made[:2], made[2:4], made[4:]]
    assert 'rel="next"' not in third
    assert numbers_in(follow(client, third, "prev")) == made[2:4]
    assert numbers_in(follow(client, second, "prev")) == made[:2]
    assert 'rel="prev"' not in first


def test_pages_of_a_season_contain_only_its_rounds(
    season: Season, client: Client, two_per_page: None
) -> None:
    made = [make_round(season).number for _ in range(1)]
    made += [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(2)]
    end_season(season, now=timezone.now())
    make_round(make_season("Winter & ice"))
    first = client.get("/rounds/?season=Autumn").content.decode()
    assert numbers_in(first) == made[:0:-1]
    assert numbers_in(follow(client, first, "next")) == made[:1]
    assert 'href="?season=Winter%20%26%20ice"' in first


def test_void_round_shows_its_reason_and_no_spread(season: Season, client: Client) -> None:
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    make_score(judge_round, make_node()[0], correct=11)
    publish(season)
    void_round(judge_round, reason="a bad question", actor=None, now=timezone.now())
    html = client.get("/rounds/").content.decode()
    assert "<q>a bad question</q>" in html
    assert not re.search(r"\.688\b", html)
    assert client.get("/rounds/figure.json").json()["data"] == []


def test_figure_contains_the_rounds_of_the_page(judged: list[Node], client: Client) -> None:
    numbers = numbers_in(client.get("/rounds/").content.decode())
    _, median, best = client.get("/rounds/figure.json").json()["data"]
    assert median["x"] == numbers[::-1]
    assert (median["y"], best["y"]) == ([0.9375, 0.9375], [1.0, 1.0])
    before = client.get(f"/rounds/figure.json?before={numbers[0]}").json()
    assert before["data"][1]["x"] == numbers[1:]


@pytest.mark.parametrize(
    ("query", "code"),
    [("before=soon", "query.before"), ("before=-3", "query.before"), ("season=x", "query.season")],
)
def test_invalid_query_returns_400(season: Season, client: Client, query: str, code: str) -> None:
    refusal = client.get(f"/rounds/?{query}")
    assert (refusal.status_code, refusal.json()["code"]) == (400, code)


def test_number_above_the_newest_round_returns_the_newest_page(
    season: Season, client: Client
) -> None:
    made = make_round(season).number
    assert numbers_in(client.get(f"/rounds/?before={10**30}").content.decode()) == [made]


def test_page_before_the_oldest_round_is_empty(season: Season, client: Client) -> None:
    make_round(season)
    html = client.get("/rounds/?before=0").content.decode()
    assert "There are no earlier rounds." in html
