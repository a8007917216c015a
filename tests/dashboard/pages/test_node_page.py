"""Test a node's page: standing, cells by dataset, and decisions of the operator."""

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from judge.services.oversight import quarantine_node, release_node
from swarm_record.stats import macro_interval
from swarm_web.dashboard.templatetags.figures import interval
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import make_node, make_round, make_score, publish


@pytest.fixture
def amber(season: Season) -> Node:
    """A node with 6 of 8 sums and 5 of 8 products solved, and a base of its model."""
    judge_round = make_round(
        season, phase=Round.Phase.CLOSED, questions=16, datasets=("chain_sum", "products")
    )
    node, _ = make_node("amber", last_seen=timezone.now())
    base, _ = make_node("base-tiny", arm=Node.Arm.BASE, last_seen=timezone.now())
    make_score(judge_round, node, correct=11)
    make_score(judge_round, base, correct=4)
    publish(season)
    return node


def read(client: Client, node: Node) -> str:
    return client.get(node.get_absolute_url()).content.decode()


def test_page_shows_the_rank_range(judged: list[Node], client: Client) -> None:
    html = read(client, judged[0])
    assert "is healthy." in html
    assert "It ranks 1–3 of 3." in html


def test_page_shows_each_dataset_with_its_interval(amber: Node, client: Client) -> None:
    html = read(client, amber)
    assert "6 of 8" in html
    assert interval(macro_interval(6 / 8, 8)) in html
    assert "5 of 8" in html
    assert interval(macro_interval(5 / 8, 8)) in html


def test_api_has_the_same_cells(amber: Node, client: Client) -> None:
    cells = client.get("/api/v1/nodes/amber").json()["cells"]
    assert cells == {
        "chain_sum": {
            "correct": 6,
            "n": 8,
            "share": 0.75,
            "interval": list(macro_interval(6 / 8, 8)),
        },
        "products": {
            "correct": 5,
            "n": 8,
            "share": 0.625,
            "interval": list(macro_interval(5 / 8, 8)),
        },
    }


def test_page_and_api_show_the_lift_over_the_base(amber: Node, client: Client) -> None:
    assert "+43.8" in read(client, amber)
    body = client.get("/api/v1/nodes/amber").json()
    assert body["over_base"] == pytest.approx(0.4375)


def test_page_of_a_base_has_no_rank_and_explains_its_purpose(amber: Node, client: Client) -> None:
    html = client.get("/nodes/base-tiny/").content.decode()
    assert "It is an untrained model, shown for comparison" in html
    assert "It ranks" not in html


def test_page_of_a_quarantined_node_shows_reason_and_remedy(amber: Node, client: Client) -> None:
    quarantine_node(amber, reason="answers copied", actor=None, now=timezone.now())
    html = read(client, amber)
    assert "is quarantined." in html
    assert "contact the operator" in html
    assert "answers copied" in html
    assert "It ranks" not in html
    body = client.get("/api/v1/nodes/amber").json()
    assert (body["rank"], body["remark"], body["score"]) == (None, "quarantined", 0.6875)


def test_released_node_is_ranked_again_and_both_rulings_are_shown(
    amber: Node, client: Client
) -> None:
    quarantine_node(amber, reason="answers copied", actor=None, now=timezone.now())
    release_node(amber, reason="it was a shared model", actor=None, now=timezone.now())
    html = read(client, amber)
    assert "It ranks 1 of 1." in html
    assert html.index("answers copied") < html.index("it was a shared model")


def test_drop_reason_with_the_name_of_a_dict_method_is_shown(
    season: Season, client: Client
) -> None:
    node, _ = make_node("amber")
    Contribution.objects.create(node=node, season=season, external_dropped={"items": 5})
    assert 'Dropped: items</th><td class="num">5</td>' in read(client, node)


def test_checked_declarations_are_shown_with_the_false_ones(season: Season, client: Client) -> None:
    node, _ = make_node("amber")
    part = Contribution.objects.create(node=node, season=season)
    assert "Declared informative" not in read(client, node)
    Contribution.objects.update(declared_checked=40, declared_false=1)
    assert "40 checked, 1 false" in read(client, node)
    assert "ignored at present" not in read(client, node)
    body = client.get("/api/v1/nodes/amber").json()
    assert (body["declared_checked"], body["declared_false"]) == (40, 1)
    assert body["declarations_count"]
    part.refresh_from_db()
    part.declarations_lapsed_at = timezone.now()
    part.save()
    assert "ignored at present" in read(client, node)
    assert not client.get("/api/v1/nodes/amber").json()["declarations_count"]
