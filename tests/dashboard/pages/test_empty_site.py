"""Test that every page works on an empty site."""

import pytest
from django.template.loader import render_to_string
from django.test import Client

PAGES = [
    "/",
    "/leaderboard/",
    "/rounds/",
    "/compare/",
    "/lab/",
    "/downloads/",
    "/join/",
    "/status/",
    "/api/docs",
]


@pytest.mark.parametrize("page", PAGES)
def test_page_works_before_the_first_season(db: None, client: Client, page: str) -> None:
    assert client.get(page).status_code == 200


def test_error_500_page_needs_no_database() -> None:
    assert "Something went wrong on our side" in render_to_string("500.html")
