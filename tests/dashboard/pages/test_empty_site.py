"""Test that every page works on an empty site."""

import pytest
from django.template.loader import render_to_string
from django.test import Client

from swarm_web.nodes.models import Node

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


@pytest.mark.parametrize(("chart", "status"), [("training", 200), ("none", 400)])
def test_charts_of_a_node_are_checked_before_the_first_season(
    db: None, client: Client, chart: str, status: int
) -> None:
    Node.objects.create(name="amber", token_hash="amber")
    assert client.get(f"/nodes/amber/figure.json?chart={chart}").status_code == status


def test_error_500_page_needs_no_database() -> None:
    assert "Something went wrong on our side" in render_to_string("500.html")
