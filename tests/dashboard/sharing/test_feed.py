"""Test the Atom feed of closed rounds."""

from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from judge.models import Round, Season
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_round

ATOM = "{http://www.w3.org/2005/Atom}"


def read_feed(client: Client) -> ElementTree.Element:
    answer = client.get("/rounds/feed.atom")
    assert answer["Content-Type"] == "application/atom+xml; charset=utf-8"
    return ElementTree.fromstring(answer.content)


def test_feed_has_the_required_elements_of_atom(season: Season, client: Client) -> None:
    judge_nodes(season, count=3)
    feed = read_feed(client)
    for element in (feed, *feed.iter(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert element.findtext(f"{ATOM}{name}"), name


def test_entries_are_the_closed_rounds_from_newest_to_oldest(
    season: Season, client: Client
) -> None:
    judge_nodes(season, count=3)
    make_round(season, phase=Round.Phase.OPEN)
    make_round(season, phase=Round.Phase.VOID)
    closed = season.rounds.filter(phase=Round.Phase.CLOSED).order_by("-number")
    entries = read_feed(client).findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}title") for entry in entries] == [
        f"Round {number} of Autumn" for number in closed.values_list("number", flat=True)
    ]
    link = entries[0].find(f"{ATOM}link")
    assert link is not None
    assert (link.get("href") or "").endswith(f"/rounds/{closed[0].number}/")


def test_feed_is_empty_before_the_first_round(db: None, client: Client) -> None:
    assert read_feed(client).findall(f"{ATOM}entry") == []


@pytest.mark.parametrize("rounds", [1, 5])
def test_feed_takes_one_query(season: Season, client: Client, rounds: int) -> None:
    judge_nodes(season, count=2, rounds=rounds)
    with CaptureQueriesContext(connection) as queries:
        read_feed(client)
    assert len(queries) == 1


def test_page_links_to_the_feed(db: None, client: Client) -> None:
    assert '<link rel="alternate" href="/rounds/feed.atom"' in client.get("/").content.decode()
