"""The list of rounds: by season, a page at a time, with turnout, spread and why one is void."""

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
def two_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAGE_ROUNDS", 2)


def numbers_in(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'<td class="num"><a href="/rounds/(\d+)/"', html)]


def follow(client: Client, html: str, rel: str) -> str:
    (query,) = re.findall(rf'<a rel="{rel}" href="(\?[^"]*)"', html)
    return client.get("/rounds/" + query.replace("&amp;", "&")).content.decode()


def test_it_tells_turnout_and_spread(judged: list[Node], client: Client) -> None:
    html = client.get("/rounds/").content.decode()
    assert '<td class="num">3 of 3</td>' in html
    assert ".938 <span>(.906–.969)</span>" in html
    assert '<td class="num">1.000</td>' in html


def test_pages_follow_each_other_both_ways(
    season: Season, client: Client, two_a_page: None
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


def test_a_season_shows_its_own_rounds_on_every_page(
    season: Season, client: Client, two_a_page: None
) -> None:
    made = [make_round(season).number for _ in range(1)]
    made += [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(2)]
    end_season(season, now=timezone.now())
    make_round(make_season("Winter & ice"))
    first = client.get("/rounds/?season=Autumn").content.decode()
    assert numbers_in(first) == made[:0:-1]
    assert numbers_in(follow(client, first, "next")) == made[:1]
    assert 'href="?season=Winter%20%26%20ice"' in first


def test_a_void_round_says_why_and_shows_no_spread(season: Season, client: Client) -> None:
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    make_score(judge_round, make_node()[0], correct=11)
    publish(season)
    void_round(judge_round, reason="a bad question", actor=None, now=timezone.now())
    html = client.get("/rounds/").content.decode()
    assert "<q>a bad question</q>" in html
    assert not re.search(r"\.688\b", html)
    assert client.get("/rounds/figure.json").json()["data"] == []


def test_the_figure_draws_what_the_page_lists(judged: list[Node], client: Client) -> None:
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
def test_a_query_that_makes_no_sense_is_refused(
    season: Season, client: Client, query: str, code: str
) -> None:
    refusal = client.get(f"/rounds/?{query}")
    assert (refusal.status_code, refusal.json()["code"]) == (400, code)


def test_a_number_that_is_too_large_asks_for_the_newest(season: Season, client: Client) -> None:
    made = make_round(season).number
    assert numbers_in(client.get(f"/rounds/?before={10**30}").content.decode()) == [made]


def test_beyond_the_oldest_round_there_is_a_way_back(season: Season, client: Client) -> None:
    make_round(season)
    html = client.get("/rounds/?before=0").content.decode()
    assert "There are no earlier rounds." in html
