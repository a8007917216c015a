"""Test that the pages of a list contain every row once."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from swarm_web.core.keyset import encode_key
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout
from tests.factories import make_node, make_round, make_score, make_spec, publish

ROUNDS = "/api/v1/rounds"


def walk(client: Client, path: str, *, limit: int = 2) -> Iterator[dict[str, Any]]:
    """Yield the items of all pages."""
    cursor = ""
    while True:
        page = client.get(path, {"limit": str(limit), "cursor": cursor}).json()
        assert len(page["items"]) <= limit
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = page["next"]


def test_pages_contain_every_round_once(season: Season, client: Client) -> None:
    numbers = [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(5)]
    assert [item["number"] for item in walk(client, ROUNDS)] == numbers[::-1]


def test_round_created_between_pages_does_not_shift_rows(season: Season, client: Client) -> None:
    numbers = [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(5)]
    received = []
    for item in walk(client, ROUNDS):
        received.append(item["number"])
        make_round(season, phase=Round.Phase.CLOSED)
    assert received == numbers[::-1]


def test_pages_contain_every_node_once_in_order_of_names(db: None, client: Client) -> None:
    for name in ("crane", "amber", "finch", "bold", "dove"):
        make_node(name)
    received = [item["node"] for item in walk(client, "/api/v1/nodes")]
    assert received == ["amber", "bold", "crane", "dove", "finch"]


def test_nodes_are_searched_by_the_prefix_of_their_name(db: None, client: Client) -> None:
    for name in ("amber-crane", "amber-dove", "bold-amber"):
        make_node(name)
    received = client.get("/api/v1/nodes?search=amber").json()["items"]
    assert [item["node"] for item in received] == ["amber-crane", "amber-dove"]


def test_pages_contain_scores_questions_and_answers_of_a_closed_round(
    judged: list[Node], season: Season, client: Client
) -> None:
    path = f"{ROUNDS}/{season.rounds.latest('number').number}"
    names = [node.name for node in judged]
    assert [item["node"] for item in walk(client, f"{path}/scores")] == names
    questions = list(walk(client, f"{path}/questions"))
    assert [item["position"] for item in questions] == list(range(1, 17))
    # Counted by the scores, as on the pages.
    assert (questions[0]["solved"], questions[0]["counted"]) == (3, 3)
    answers = list(walk(client, f"{path}/questions/1/answers"))
    assert [(item["node"], item["solved"]) for item in answers] == [
        (name, place % 2 == 0) for place, name in enumerate(names)
    ]


def test_scores_of_a_node_are_paged_from_newest_to_oldest(
    judged: list[Node], season: Season, client: Client
) -> None:
    received = [s["round"] for s in walk(client, f"/api/v1/nodes/{judged[0].name}/scores", limit=1)]
    assert received == list(season.rounds.order_by("-number").values_list("number", flat=True))


def test_pages_contain_every_row_of_the_leaderboard_once(
    judged: list[Node], client: Client
) -> None:
    received = [item["node"] for item in walk(client, "/api/v1/leaderboard")]
    assert received == [node.name for node in judged]


def test_cursor_of_a_changed_leaderboard_returns_409(
    judged: list[Node], season: Season, client: Client
) -> None:
    cursor = client.get("/api/v1/leaderboard?limit=2").json()["next"]
    make_score(make_round(season, phase=Round.Phase.CLOSED), judged[2], correct=16)
    publish(season)
    refusal = client.get("/api/v1/leaderboard", {"limit": "2", "cursor": cursor})
    assert (refusal.status_code, refusal.json()["code"]) == (409, "leaderboard.changed")


@pytest.mark.parametrize(
    ("query", "names"),
    [("arm=swarm&search=amb", ["amber"]), ("arm=base", ["base-tiny"]), ("model=none", [])],
)
def test_leaderboard_can_be_filtered(
    season: Season, client: Client, query: str, names: list[str]
) -> None:
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    for node in (make_node("amber"), make_node("bold"), make_node("base-tiny", arm="base")):
        make_score(judge_round, node[0], correct=8)
    publish(season)
    received = client.get(f"/api/v1/leaderboard?{query}").json()["items"]
    assert [item["node"] for item in received] == names


def test_archived_rollouts_are_paged_from_newest_to_oldest(season: Season, client: Client) -> None:
    now = timezone.now()
    for minute in range(3):
        _archive(season, f"r{minute}", published_at=now + timedelta(minutes=minute), solved=minute)
    received = list(walk(client, "/api/v1/rollouts"))
    assert [(item["rollout"], item["solved"]) for item in received] == [
        ("r2", 2),
        ("r1", 1),
        ("r0", 0),
    ]
    wrong = client.get("/api/v1/rollouts?outcome=wrong").json()["items"]
    assert [item["rollout"] for item in wrong] == ["r0"]


def test_unchecked_rollout_is_not_listed(season: Season, client: Client) -> None:
    _archive(season, "r0", published_at=timezone.now(), solved=None)
    assert client.get("/api/v1/rollouts").json() == {"items": [], "next": None}


def _archive(season: Season, rollout: str, *, published_at: datetime, solved: int | None) -> None:
    author, _ = make_node()
    verdict = {"score": 1.0, "solved": True, "verdict": "right"}
    ArchivedRollout.objects.create(
        season=season,
        author=author,
        rollout=rollout,
        dataset="chain_sum",
        spec=msgspec.to_builtins(make_spec(season)),
        model="tiny",
        step=1,
        completions=[{"text": "<answer>2</answer>", "finish_reason": "stop", **verdict}],
        published_at=published_at,
        solved=solved,
        total=2,
    )


@pytest.mark.parametrize("part", ["scores", "questions", "questions/1/answers"])
def test_content_of_an_open_round_is_sealed(season: Season, client: Client, part: str) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    refusal = client.get(f"{ROUNDS}/{judge_round.number}/{part}")
    assert (refusal.status_code, refusal.json()["code"]) == (409, "round.sealed")


@pytest.mark.parametrize("cursor", ["x", "WyJ", encode_key(["amber"]), encode_key([-1])])
def test_invalid_cursor_returns_404(db: None, client: Client, cursor: str) -> None:
    refusal = client.get(ROUNDS, {"cursor": cursor})
    assert (refusal.status_code, refusal.json()["code"]) == (404, "query.cursor")


def test_cursor_with_a_naive_time_returns_404(db: None, client: Client) -> None:
    refusal = client.get("/api/v1/rollouts", {"cursor": encode_key(["2026-01-01T00:00:00", 1])})
    assert (refusal.status_code, refusal.json()["code"]) == (404, "query.cursor")


def test_seasons_are_listed_without_drafts(season: Season, client: Client) -> None:
    Season.objects.create(name="Winter", tasks=season.tasks)
    (received,) = client.get("/api/v1/seasons").json()["items"]
    assert (received["season"], received["state"], received["external"]) == (
        "Autumn",
        "running",
        24,
    )


def test_status_contains_the_current_round(season: Season, client: Client) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    received = client.get("/api/v1/status").json()
    assert (received["round"], received["phase"], received["connected"]) == (
        judge_round.number,
        "open",
        0,
    )
