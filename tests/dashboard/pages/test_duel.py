"""Test one model on the compare page: arms over rounds, datasets, and training mixes."""

import copy

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Ledger, Round, Season
from judge.services.comparing import compare_season
from swarm_web.board.mixes import read_mixes
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import make_node, make_round, make_score, make_scores, make_season, publish


@pytest.fixture(scope="module")
def nodes(module_rows: None) -> dict[str, Node]:
    season = make_season()
    plan = {"amber": 12, "birch": 10, "coral": 6, "dune": 4, "bare": 2}
    arms = {"coral": "isolated", "dune": "isolated", "bare": "base"}
    nodes = {name: make_node(name, arm=arms.get(name, "swarm"))[0] for name in plan}
    for _ in range(3):
        judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=16)
        make_scores(judge_round, {nodes[name]: correct for name, correct in plan.items()})
    make_score(judge_round, make_node(model="other")[0], correct=3)
    publish(season)
    compare_season(season, now=timezone.now())
    return nodes


@pytest.fixture
def duel(nodes: dict[str, Node], db: None) -> dict[str, Node]:
    """Three judged rounds with two swarm nodes, two isolated ones and a base."""
    return copy.deepcopy(nodes)


@pytest.fixture
def season(duel: dict[str, Node]) -> Season:
    return Season.objects.get()


def train(season: Season, node: Node, *, local: int, external: int) -> None:
    Contribution.objects.create(
        node=node, season=season, local_used=local, external_used=external, delivered=external
    )


def test_chart_has_a_line_for_each_arm(duel: dict[str, Node], client: Client) -> None:
    data = client.get("/compare/figure.json?model=tiny").json()["data"]
    lines = {trace["name"]: trace["y"] for trace in data if "name" in trace}
    assert lines == {"swarm": [11 / 16] * 3, "isolated": [5 / 16] * 3, "untrained": [2 / 16] * 3}


def test_each_dataset_has_its_difference(duel: dict[str, Node], client: Client) -> None:
    html = client.get("/compare/?model=tiny").content.decode()
    tasks = html.split('id="tasks"')[1].split("</section>")[0]
    assert "chain_sum" in tasks
    assert '<td class="num">+37.5</td>' in tasks


def test_model_is_selected_by_the_query(duel: dict[str, Node], client: Client) -> None:
    html = client.get("/compare/?model=other").content.decode()
    assert "A closer look: other" in html
    assert "both arms need a node with 3 rounds" in html
    refusal = client.get("/compare/?model=none")
    assert (refusal.status_code, refusal.json()["code"]) == (400, "query.model")


def test_nodes_are_grouped_by_their_training_mix(
    season: Season, duel: dict[str, Node], client: Client
) -> None:
    for name, external in (("amber", 60), ("birch", 60), ("coral", 0), ("dune", 10), ("bare", 0)):
        train(season, duel[name], local=40, external=external)
    mixes = read_mixes(season, "tiny")
    assert [(mix.low, mix.high, mix.nodes) for mix in mixes] == [
        (0.0, 0.0, 1),
        (0.0, 0.25, 1),
        (0.5, 0.75, 2),
    ]
    assert [mix.deviation for mix in mixes] == pytest.approx([-2 / 16, -4 / 16, 3 / 16])
    assert [mix.interval is None for mix in mixes] == [True, True, False]
    html = client.get("/compare/?model=tiny").content.decode()
    assert "above 0, below 25" in html.split('id="mixes"')[1]


def test_node_that_was_untrained_in_an_earlier_season_has_a_mix(
    season: Season, duel: dict[str, Node]
) -> None:
    earlier = make_season("Earlier", state=Season.State.ENDED)
    Ledger.objects.create(season=earlier, node=duel["amber"], model="tiny", arm="base")
    train(season, duel["amber"], local=40, external=60)
    assert [mix.nodes for mix in read_mixes(season, "tiny")] == [1]


def test_node_without_reported_training_has_no_mix(season: Season, duel: dict[str, Node]) -> None:
    train(season, duel["amber"], local=0, external=0)
    assert read_mixes(season, "tiny") == []
