"""Test a node's page over time: rounds, training, provenance, and refusals."""

import copy

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from swarm_protocol.errors import FIXES, ErrorCode
from swarm_web.core.refusals import pending_refusals, record_refusal
from swarm_web.dashboard.reports import node_charts as history
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Exchange, TrainingPoint
from tests.factories import make_node, make_round, make_scores, make_season, publish


@pytest.fixture(scope="module")
def judged_amber(module_rows: None) -> Node:
    season = make_season()
    node, _ = make_node("amber", last_seen=timezone.now())
    base, _ = make_node("base-tiny", arm=Node.Arm.BASE, last_seen=timezone.now())
    for correct in range(4, 10):
        judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=16)
        make_scores(judge_round, {node: correct, base: 4})
    publish(season)
    return node


@pytest.fixture
def amber(judged_amber: Node, db: None) -> Node:
    """A node that was judged in six rounds, with a base of its model."""
    return copy.deepcopy(judged_amber)


@pytest.fixture
def season(amber: Node) -> Season:
    return Season.objects.get()


def draw(client: Client, query: str = "") -> list[dict[str, list[float]]]:
    data: list[dict[str, list[float]]] = client.get(f"/nodes/amber/figure.json{query}").json()[
        "data"
    ]
    return data


def test_scores_are_shown_beside_the_base(amber: Node, client: Client) -> None:
    _, dots, line, base = draw(client)
    assert dots["y"] == [correct / 16 for correct in range(4, 10)]
    assert line["y"][-1] == (5 + 6 + 7 + 8 + 9) / 80
    assert base["y"] == [0.25] * 6
    html = client.get("/nodes/amber/").content.decode()
    assert '<td class="num">.438</td>' in html
    assert '<td class="num">.250</td>' in html


def test_longer_span_pools_more_rounds_per_point(
    amber: Node, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SPANS", (2, 6))
    _band, line, base = draw(client, "?rounds=6")
    assert len(line["x"]) == len(base["x"]) == 2
    assert "?rounds=6" in client.get("/nodes/amber/?rounds=6").content.decode()


def test_number_of_rounds_in_the_chart_is_limited(
    amber: Node, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SPANS", (2, 6))
    _, dots, *_ = draw(client)
    assert dots["y"] == [8 / 16, 9 / 16]


@pytest.mark.parametrize("query", ["rounds=7", "rounds=all", "chart=odd"])
def test_invalid_chart_query_returns_400(amber: Node, client: Client, query: str) -> None:
    refusal = client.get(f"/nodes/amber/figure.json?{query}")
    assert refusal.status_code == 400
    assert refusal.json()["code"].startswith("query.")


def test_training_is_drawn_as_reported(season: Season, amber: Node, client: Client) -> None:
    TrainingPoint.objects.create(
        node=amber,
        season=season,
        at=timezone.now(),
        step=7,
        training_reward=0.625,
        informative_share=0.5,
        reflection={"recheck": 0.125},
    )
    reward, informative = draw(client, "?chart=training")
    assert (reward["x"], reward["y"], informative["y"]) == ([7], [0.625], [0.5])
    recheck, *_ = draw(client, "?chart=reflection")
    assert recheck["y"] == [0.125]


def test_page_lists_nodes_that_it_learned_from_and_that_it_taught(
    season: Season, amber: Node, client: Client
) -> None:
    bold, coral = make_node("bold")[0], make_node("coral")[0]
    for giver, taker, used in ((bold, amber, 41), (amber, coral, 7)):
        Exchange.objects.create(
            season=season, hour=timezone.now(), giver=giver, taker=taker, used=used
        )
    html = client.get("/nodes/amber/").content.decode()
    learned, taught = html.split("Learned from")[1].split("Taught")
    assert "bold" in learned
    assert "41 rollouts" in learned
    assert "coral" in taught
    assert "7 rollouts" in taught


async def refuse_thrice(node: Node) -> None:
    for code in (ErrorCode.TASK_INDEX, ErrorCode.TASK_INDEX, ErrorCode.ANSWER_LATE):
        record_refusal(node.pk, code=code, message="it was so", now=timezone.now())
    await pending_refusals().flush()


def test_page_shows_the_last_error_and_its_fix(amber: Node, client: Client) -> None:
    assert "Nothing in the last 7 days." in client.get("/nodes/amber/").content.decode()
    async_to_sync(refuse_thrice)(amber)
    html = client.get("/nodes/amber/").content.decode()
    assert "Last: <code>answer.late</code>, it was so." in html
    assert FIXES[ErrorCode.ANSWER_LATE] in html
    assert '<code>task.index</code></th><td class="num">2</td>' in html


@pytest.mark.usefixtures("redis_away")
def test_unavailable_refusals_are_not_shown_as_none(amber: Node, client: Client) -> None:
    html = client.get("/nodes/amber/").content.decode()
    assert "Nothing in the last 7 days." not in html
    assert "Not available now" in html


def test_hardware_is_shown_only_if_it_is_declared(amber: Node, client: Client) -> None:
    assert "Hardware" not in client.get("/nodes/amber/").content.decode()
    amber.hardware = {"device": "RTX 4070", "memory": 12 * 2**30}
    amber.save()
    html = client.get("/nodes/amber/").content.decode()
    assert "RTX 4070" in html
    assert "12.0\xa0GB" in html
