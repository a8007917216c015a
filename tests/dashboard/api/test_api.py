"""Test the shapes of the read API's responses."""

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from judge.services.oversight import quarantine_node
from swarm_web.board import leaderboard
from swarm_web.nodes.models import Node
from tests.factories import make_node, make_round, make_score, publish


def test_leaderboard_has_the_documented_shape(judged: list[Node], client: Client) -> None:
    board = client.get("/api/v1/leaderboard").json()
    assert (board["season"], board["window"]) == ("Autumn", "season")
    assert board["as_of"].endswith("Z")
    first = board["items"][0]
    assert first["node"] == judged[0].name
    assert first["rank"] == [1, 3]
    assert first["score"] == 1.0
    assert first["interval"][0] < 1.0 == first["interval"][1]
    assert (first["n"], first["rounds"], first["external_used"]) == (32, 2, 7)
    assert first["remark"] == ""
    assert first["cells"] == {"chain_sum": [32, 32]}
    assert {"model", "arm", "last_seen"} <= first.keys()
    assert (board["base"], board["quarantined"]) == ([], 0)


def test_node_with_too_few_questions_has_a_null_rank_and_a_remark(
    season: Season, client: Client
) -> None:
    node, _ = make_node()
    make_score(make_round(season, phase=Round.Phase.CLOSED), node, correct=1, n=2)
    publish(season)
    (item,) = client.get("/api/v1/leaderboard").json()["items"]
    assert (item["rank"], item["remark"]) == (None, "too_few")


def test_base_models_and_quarantined_nodes_are_not_among_the_items(
    season: Season, client: Client
) -> None:
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    base, _ = make_node("base-tiny", arm=Node.Arm.BASE)
    amber, _ = make_node("amber")
    sly, _ = make_node("sly-fox")
    for node, correct in ((base, 4), (amber, 12), (sly, 16)):
        make_score(judge_round, node, correct=correct)
    publish(season)
    quarantine_node(sly, reason="copies", actor=None, now=timezone.now())
    board = client.get("/api/v1/leaderboard").json()
    assert [(item["node"], item["over_base"]) for item in board["items"]] == [("amber", 0.5)]
    assert [(item["node"], item["rank"]) for item in board["base"]] == [("base-tiny", None)]
    assert board["quarantined"] == 1


def test_every_item_of_a_large_page_is_compared_with_its_untrained_model(
    season: Season, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "PAGE_ROWS", 1)
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    for model in ("tiny", "small"):
        base, _ = make_node(f"base-{model}", arm=Node.Arm.BASE, model=model)
        trained, _ = make_node(f"trained-{model}", model=model)
        make_score(judge_round, base, correct=4)
        make_score(judge_round, trained, correct=12)
    publish(season)
    items = client.get("/api/v1/leaderboard?limit=2").json()["items"]
    assert [item["over_base"] for item in items] == [0.5, 0.5]


def test_nodes_without_a_score_are_listed_as_waiting(judged: list[Node], client: Client) -> None:
    make_node("young-robin", last_seen=timezone.now())
    board = client.get("/api/v1/leaderboard").json()
    assert len(board["items"]) == 3
    assert board["waiting"] == ["young-robin"]


@pytest.mark.parametrize("window", ["season", "round", "recent", "24h", "7d"])
def test_leaderboard_is_available_for_every_window(
    judged: list[Node], client: Client, window: str
) -> None:
    board = client.get(f"/api/v1/leaderboard?window={window}").json()
    assert board["window"] == window
    assert [item["n"] for item in board["items"]] == [16 if window == "round" else 32] * 3


def test_leaderboard_is_empty_before_the_first_season(db: None, client: Client) -> None:
    assert client.get("/api/v1/leaderboard").json()["items"] == []


def test_rounds_are_paged_from_newest_to_oldest(judged: list[Node], client: Client) -> None:
    page = client.get("/api/v1/rounds?limit=1").json()
    rest = client.get(f"/api/v1/rounds?cursor={page['next']}").json()
    assert page["items"][0]["number"] > rest["items"][0]["number"]
    assert rest["next"] is None


def test_closed_round_contains_scores_and_questions(
    judged: list[Node], season: Season, client: Client
) -> None:
    number = season.rounds.latest("number").number
    content = client.get(f"/api/v1/rounds/{number}").json()
    assert content["phase"] == "closed"
    assert [score["node"] for score in content["scores"]] == [node.name for node in judged]
    assert content["questions"][0]["spec"]["dataset"] == "chain_sum"
    assert content["questions"][0]["solved"] == 3


def test_node_contains_standing_and_participation(judged: list[Node], client: Client) -> None:
    content = client.get(f"/api/v1/nodes/{judged[0].name}").json()
    assert content["connected"] is True
    assert (content["rank"], content["of"], content["n"]) == ([1, 3], 3, 32)
    assert (content["external_used"], content["step"], content["training_reward"]) == (7, 3, None)
    assert content["verdict"]["state"] == "good"
    assert len(content["scores"]) == 2


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/v1/leaderboard?window=decade", 400, "query.invalid"),
        ("/api/v1/rounds?limit=many", 400, "query.invalid"),
        ("/api/v1/rounds/987654", 404, "not_found"),
        ("/api/v1/nodes/nobody", 404, "not_found"),
        ("/api/v1/nothing", 404, "not_found"),
    ],
)
def test_error_response_has_code_message_and_fix(
    db: None, client: Client, path: str, status: int, code: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json().keys() == {"code", "message", "fix"}
    assert answer.json()["code"] == code


def test_openapi_document_is_served(db: None, client: Client) -> None:
    document = client.get("/api/openapi.json").json()
    assert "/api/v1/leaderboard" in document["paths"]


def test_open_round_is_listed_with_its_phase(season: Season, client: Client) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    listed = client.get("/api/v1/rounds").json()["items"]
    assert (listed[0]["number"], listed[0]["phase"]) == (judge_round.number, "open")


def test_scores_of_a_quarantined_node_are_marked(
    judged: list[Node], season: Season, client: Client
) -> None:
    quarantine_node(judged[0], reason="copies", actor=None, now=timezone.now())
    path = f"/api/v1/rounds/{season.rounds.latest('number').number}"
    for content in (
        client.get(path).json()["scores"],
        client.get(f"{path}/scores").json()["items"],
    ):
        marked = {score["node"]: score["quarantined"] for score in content}
        assert marked == {node.name: node == judged[0] for node in judged}
