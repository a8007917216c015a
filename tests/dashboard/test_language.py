"""A visitor's language: by the browser, by choice, and kept."""

import pytest
from django.test import AsyncClient, Client

from judge.models import Season
from tests.factories import make_season


@pytest.mark.parametrize(
    ("wanted", "spoken"),
    [("fa-IR,fa;q=0.9", "fa"), ("zh-TW", "zh-hant"), ("zh-CN,en", "zh-hans"), ("sw", "en")],
)
def test_a_page_speaks_what_the_browser_asks_for(
    db: None, client: Client, wanted: str, spoken: str
) -> None:
    page = client.get("/join/", headers={"accept-language": wanted})
    assert page.headers["Content-Language"] == spoken
    assert f'<html lang="{spoken}"' in page.content.decode()


def test_a_choice_leads_back_to_the_same_page_and_query(db: None, client: Client) -> None:
    answer = client.get("/leaderboard/?window=24h&lang=fa&a=1&a=2")
    assert answer.status_code == 302
    assert answer["Location"] == "/leaderboard/?window=24h&a=1&a=2"
    assert answer["Cache-Control"] == "no-store"


def test_a_choice_is_kept_and_wins_over_the_browser(db: None, client: Client) -> None:
    client.get("/join/?lang=zh-hant")
    page = client.get("/rounds/", headers={"accept-language": "fa"})
    assert page.headers["Content-Language"] == "zh-hant"


def test_a_choice_never_leads_to_another_site(db: None, client: Client) -> None:
    answer = client.get("/?lang=fa", PATH_INFO="//evil.example/")
    assert answer["Location"] == "/%2Fevil.example/"


def test_an_unknown_language_changes_nothing(db: None, client: Client) -> None:
    page = client.get("/join/?lang=tlh")
    assert page.status_code == 200
    assert "language" not in page.cookies


def test_persian_is_written_from_right_to_left(db: None, client: Client) -> None:
    page = client.get("/join/", headers={"accept-language": "fa"}).content.decode()
    assert '<html lang="fa" dir="rtl">' in page


def test_caches_are_told_that_a_page_depends_on_the_visitor(db: None, client: Client) -> None:
    page = client.get("/join/")
    assert {"Accept-Language", "Cookie"} <= set(page.headers["Vary"].split(", "))


def test_what_programs_read_stays_in_one_language(season: Season, client: Client) -> None:
    answer = client.get("/api/v1/leaderboard", headers={"accept-language": "fa"})
    assert answer.status_code == 200
    assert "Content-Language" not in answer.headers
    assert "Accept-Language" not in answer.headers.get("Vary", "")


def test_the_switch_keeps_the_query(db: None, client: Client) -> None:
    make_season("Autumn")
    page = client.get("/leaderboard/?window=24h").content.decode()
    assert 'href="?window=24h&amp;lang=fa"' in page


async def test_the_asynchronous_server_speaks_it_too(
    tidy_stores: None, async_client: AsyncClient
) -> None:
    page = await async_client.get("/join/", headers={"accept-language": "fa"})
    assert page.headers["Content-Language"] == "fa"


def test_the_apis_own_page_is_told_in_the_readers_language(db: None, client: Client) -> None:
    persian = client.get("/api/docs", headers={"accept-language": "fa"})
    assert persian.headers["Content-Language"] == "fa"
    assert 'dir="rtl"' in persian.text
    chosen = client.get("/api/docs?lang=fa")
    assert (chosen.status_code, chosen.headers["Location"]) == (302, "/api/docs")
