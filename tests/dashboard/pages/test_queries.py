"""Test that a page's number of queries is independent of the number of nodes and rounds."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.dashboard.conftest import judge_nodes
from tests.factories import make_season

PAGES = [
    "/",
    "/leaderboard/",
    "/compare/",
    "/compare/figure.json",
    "/lab/",
    "/api/v1/lab",
    "/leaderboard/figure.json",
    "/nodes/{node}/",
    "/nodes/{node}/figure.json",
    "/nodes/{node}/figure.json?chart=training",
    "/rounds/",
    "/rounds/figure.json",
    "/rounds/{round}/",
    "/rounds/{round}/replay.json",
    "/rounds/{round}/questions/1/",
    "/api/v1/leaderboard",
    "/api/v1/compare",
    "/api/v1/rounds",
    "/api/v1/rounds/{round}",
    "/api/v1/rounds/{round}/scores",
    "/api/v1/rounds/{round}/questions",
    "/api/v1/rounds/{round}/questions/1/answers",
    "/api/v1/nodes",
    "/api/v1/nodes/{node}",
    "/api/v1/nodes/{node}/scores",
    "/api/v1/rollouts",
    "/api/v1/seasons",
    "/api/v1/status",
    "/api/v1/tasks",
    "/api/v1/tasks/chain_sum",
    "/nodes/{node}/badge.json",
    "/nodes/{node}/card.png",
    "/card.png",
]


def count_queries(client: Client, page: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(page).status_code == 200, page
    return len(queries)


@pytest.fixture(scope="module")
def counts(module_rows: None) -> dict[str, tuple[int, int]]:
    """Each page's number of queries with 3 nodes and 2 rounds, and with 31 and 4."""
    client, season = Client(), make_season("Autumn")

    def count_all() -> list[int]:
        number = season.rounds.latest("number").number
        return [count_queries(client, page.format(node=node.name, round=number)) for page in PAGES]

    node = judge_nodes(season, count=3)[0]
    few = count_all()
    judge_nodes(season, count=27, also=[node])
    return dict(zip(PAGES, zip(few, count_all(), strict=True), strict=True))


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_number_of_queries_is_independent_of_nodes_and_rounds(
    counts: dict[str, tuple[int, int]], page: str
) -> None:
    few, many = counts[page]
    assert few == many
