"""Test the choice of language, by browser or by visitor."""

import pytest
from django.test import AsyncClient, Client

from judge.models import Season
from tests.factories import make_season


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [("fa-IR,fa;q=0.9", "fa"), ("zh-TW", "zh-hant"), ("zh-CN,en", "zh-hans"), ("sw", "en")],
)
def test_page_has_the_language_of_the_accept_language_header(
    db: None, client: Client, accepted: str, expected: str
) -> None:
    page = client.get("/join/", headers={"accept-language": accepted})
    assert page.headers["Content-Language"] == expected
    assert f'<html lang="{expected}"' in page.content.decode()


def test_choosing_a_language_redirects_to_the_same_path_and_query(db: None, client: Client) -> None:
    answer = client.get("/leaderboard/?window=24h&lang=fa&a=1&a=2")
    assert answer.status_code == 302
    assert answer["Location"] == "/leaderboard/?window=24h&a=1&a=2"
    assert answer["Cache-Control"] == "no-store"


def test_chosen_language_overrides_the_browser(db: None, client: Client) -> None:
    client.get("/join/?lang=zh-hant")
    page = client.get("/rounds/", headers={"accept-language": "fa"})
    assert page.headers["Content-Language"] == "zh-hant"


def test_choosing_a_language_never_redirects_to_another_site(db: None, client: Client) -> None:
    answer = client.get("/?lang=fa", PATH_INFO="//evil.example/")
    assert answer["Location"] == "/%2Fevil.example/"


def test_unknown_language_is_ignored(db: None, client: Client) -> None:
    page = client.get("/join/?lang=tlh")
    assert page.status_code == 200
    assert "language" not in page.cookies


def test_persian_page_is_right_to_left(db: None, client: Client) -> None:
    page = client.get("/join/", headers={"accept-language": "fa"}).content.decode()
    assert '<html lang="fa" dir="rtl">' in page


def test_page_varies_by_language_and_cookie(db: None, client: Client) -> None:
    page = client.get("/join/")
    assert {"Accept-Language", "Cookie"} <= set(page.headers["Vary"].split(", "))


def test_api_is_not_translated(season: Season, client: Client) -> None:
    answer = client.get("/api/v1/leaderboard", headers={"accept-language": "fa"})
    assert answer.status_code == 200
    assert "Content-Language" not in answer.headers
    assert "Accept-Language" not in answer.headers.get("Vary", "")


def test_links_of_the_language_menu_preserve_the_query(db: None, client: Client) -> None:
    make_season("Autumn")
    page = client.get("/leaderboard/?window=24h").content.decode()
    assert 'href="?window=24h&amp;lang=fa"' in page


async def test_asynchronous_server_selects_the_language(
    tidy_stores: None, async_client: AsyncClient
) -> None:
    page = await async_client.get("/join/", headers={"accept-language": "fa"})
    assert page.headers["Content-Language"] == "fa"


def test_api_documentation_is_translated(db: None, client: Client) -> None:
    persian = client.get("/api/docs", headers={"accept-language": "fa"})
    assert persian.headers["Content-Language"] == "fa"
    assert 'dir="rtl"' in persian.text
    chosen = client.get("/api/docs?lang=fa")
    assert (chosen.status_code, chosen.headers["Location"]) == (302, "/api/docs")
