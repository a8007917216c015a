"""Every page answers before there is anything to tell."""

import pytest
from django.test import Client

PAGES = [
    "/",
    "/leaderboard/",
    "/rounds/",
    "/compare/",
    "/downloads/",
    "/join/",
    "/status/",
    "/api/docs",
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_answer_before_the_first_season(db: None, client: Client, page: str) -> None:
    assert client.get(page).status_code == 200
