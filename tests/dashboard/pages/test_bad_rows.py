"""Test that a node name that is not a slug, as only SQL can write it, breaks no page."""

import pytest
from django.db import connection
from django.test import Client

from judge.models import Round
from swarm_web.nodes.models import Node
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_archived_rollout, make_exchange, make_season, publish

PAGES = [
    "/",
    "/leaderboard/",
    "/leaderboard/figure.json",
    "/compare/",
    "/rounds/",
    "/rounds/feed.atom",
    "/rounds/{round}/",
    "/rounds/{round}/questions/1/",
    "/rollouts/",
    "/rollouts/flow/",
    "/tasks/",
    "/nodes/{node}/",
    "/downloads/rewards.csv",
    "/badge.svg",
    "/card.png",
    "/status/",
    "/api/v1/nodes",
    "/api/v1/leaderboard",
    "/api/v1/rollouts",
]


@pytest.fixture(scope="module")
def healthy(module_rows: None) -> Node:
    """A node that was judged together with badly named ones, and learned from one of them."""
    season = make_season()
    bad, healthy, waiting = judge_nodes(season, count=3)
    make_archived_rollout(season, bad, learners=[healthy])
    make_exchange(season, bad, healthy, used=3)
    make_exchange(season, healthy, bad, used=3)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE nodes_node DROP CONSTRAINT IF EXISTS node_name_is_a_slug")
        for node, name in ((bad, "x/y"), (waiting, "../?a#b c\u202e")):
            cursor.execute("UPDATE nodes_node SET name = %s WHERE id = %s", [name, node.pk])
    publish(season)
    return healthy


@pytest.mark.parametrize("page", PAGES)
def test_bad_name_breaks_no_page(healthy: Node, db: None, client: Client, page: str) -> None:
    path = page.format(node=healthy.name, round=Round.objects.latest("number").number)
    assert client.get(path).status_code == 200
