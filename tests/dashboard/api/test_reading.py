"""How the read API is read: pages, what is known already, other sites, and how often."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from judge.models import Round, Season
from swarm_web.dashboard.api.limits import PERIOD_S, name_network
from swarm_web.dashboard.api.paging import write_cursor
from swarm_web.nodes.models import Node
from swarm_web.store import sync_redis
from tests.factories import make_node, make_round

ROUNDS = "/api/v1/rounds"


def walk(client: Client, path: str, *, limit: int = 2) -> Iterator[dict[str, Any]]:
    """Read page after page until the last one."""
    cursor = ""
    while True:
        page = client.get(path, {"limit": str(limit), "cursor": cursor}).json()
        assert len(page["items"]) <= limit
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = page["next"]


# ---- pages


def test_a_walk_tells_every_round_once(season: Season, client: Client) -> None:
    numbers = [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(5)]
    assert [item["number"] for item in walk(client, ROUNDS)] == numbers[::-1]


def test_a_round_that_is_made_between_pages_moves_nothing(season: Season, client: Client) -> None:
    numbers = [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(5)]
    told = []
    for item in walk(client, ROUNDS):
        told.append(item["number"])
        make_round(season, phase=Round.Phase.CLOSED)
    assert told == numbers[::-1]


def test_a_walk_tells_every_node_once_by_name(db: None, client: Client) -> None:
    for name in ("crane", "amber", "finch", "bold", "dove"):
        make_node(name)
    told = [item["node"] for item in walk(client, "/api/v1/nodes")]
    assert told == ["amber", "bold", "crane", "dove", "finch"]


def test_nodes_are_found_by_the_beginning_of_their_name(db: None, client: Client) -> None:
    for name in ("amber-crane", "amber-dove", "bold-amber"):
        make_node(name)
    told = client.get("/api/v1/nodes?search=amber").json()["items"]
    assert [item["node"] for item in told] == ["amber-crane", "amber-dove"]


def test_scores_questions_and_answers_of_a_closed_round_are_walked(
    judged: list[Node], season: Season, client: Client
) -> None:
    path = f"{ROUNDS}/{season.rounds.latest('number').number}"
    names = [node.name for node in judged]
    assert [item["node"] for item in walk(client, f"{path}/scores")] == names
    questions = list(walk(client, f"{path}/questions"))
    assert [item["position"] for item in questions] == list(range(1, 17))
    assert (questions[0]["solved"], questions[0]["seated"]) == (2, 3)
    answers = list(walk(client, f"{path}/questions/1/answers"))
    assert [(item["node"], item["solved"]) for item in answers] == [
        (name, place % 2 == 0) for place, name in enumerate(names)
    ]


def test_a_nodes_results_are_walked_newest_first(
    judged: list[Node], season: Season, client: Client
) -> None:
    told = [s["round"] for s in walk(client, f"/api/v1/nodes/{judged[0].name}/scores", limit=1)]
    assert told == list(season.rounds.order_by("-number").values_list("number", flat=True))


@pytest.mark.parametrize("part", ["scores", "questions", "questions/1/answers"])
def test_what_an_open_round_asks_is_sealed(season: Season, client: Client, part: str) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    refusal = client.get(f"{ROUNDS}/{judge_round.number}/{part}")
    assert (refusal.status_code, refusal.json()["code"]) == (409, "round.sealed")


@pytest.mark.parametrize("cursor", ["x", "WyJ", write_cursor(["amber"]), write_cursor([-1])])
def test_a_cursor_that_was_never_given_names_no_page(db: None, client: Client, cursor: str) -> None:
    refusal = client.get(ROUNDS, {"cursor": cursor})
    assert (refusal.status_code, refusal.json()["code"]) == (404, "query.cursor")


def test_seasons_are_told_without_drafts(season: Season, client: Client) -> None:
    Season.objects.create(name="Winter", tasks=season.tasks)
    (told,) = client.get("/api/v1/seasons").json()["items"]
    assert (told["season"], told["state"], told["external"]) == ("Autumn", "running", 4)


def test_the_status_tells_the_round_that_runs(season: Season, client: Client) -> None:
    judge_round = make_round(season, phase=Round.Phase.OPEN)
    told = client.get("/api/v1/status").json()
    assert (told["round"], told["phase"], told["connected"]) == (judge_round.number, "open", 0)


# ---- what is known already


@pytest.mark.parametrize("path", [ROUNDS, "/api/v1/leaderboard", "/api/openapi.json"])
def test_an_unchanged_answer_is_not_sent_again(
    judged: list[Node], client: Client, path: str
) -> None:
    etag = client.get(path)["ETag"]
    again = client.get(path, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)


def test_a_changed_answer_is_sent(season: Season, client: Client) -> None:
    etag = client.get(ROUNDS)["ETag"]
    make_round(season)
    again = client.get(ROUNDS, headers={"If-None-Match": etag})
    assert (again.status_code, len(again.json()["items"])) == (200, 1)


def test_a_refusal_has_no_etag(db: None, client: Client) -> None:
    assert "ETag" not in client.get(f"{ROUNDS}/987654")


# ---- methods and other sites


def test_head_has_the_headers_of_get(season: Season, client: Client) -> None:
    head, get = client.head(ROUNDS), client.get(ROUNDS)
    assert (head.status_code, head.content, head["ETag"]) == (200, b"", get["ETag"])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_methods_are_refused(db: None, client: Client, method: str) -> None:
    refusal = client.generic(method, ROUNDS)
    assert (refusal.status_code, refusal["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert refusal.json()["code"] == "method"


def test_pages_of_other_sites_may_read(db: None, client: Client) -> None:
    told = client.get(ROUNDS, headers={"Origin": "https://elsewhere.example"})
    assert told["Access-Control-Allow-Origin"] == "*"
    assert "ETag" in told["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in told


def test_pages_of_other_sites_may_not_write(db: None, client: Client) -> None:
    asking = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    told = client.options(ROUNDS, headers=asking)
    assert told["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/", "/join/", "/status/"])
def test_pages_are_not_for_other_sites(db: None, client: Client, path: str) -> None:
    told = client.get(path, headers={"Origin": "https://elsewhere.example"})
    assert "Access-Control-Allow-Origin" not in told


# ---- how often


@pytest.fixture
def limited(db: None, settings: Settings) -> Settings:
    """Allow two requests a minute, in a minute without any."""
    settings.API_REQUESTS_PER_MINUTE = 2
    sync_redis().flushdb()
    return settings


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the limit."""
    monkeypatch.setattr("swarm_web.dashboard.api.limits.time.time", lambda: 1000 * PERIOD_S + 20)


@pytest.mark.usefixtures("limited", "one_minute")
def test_who_asks_too_often_is_told_when_to_come_back(client: Client) -> None:
    codes = [client.get(ROUNDS).status_code for _ in range(3)]
    refusal = client.get(ROUNDS)
    assert codes == [200, 200, 429]
    assert (refusal["Retry-After"], refusal.json()["code"]) == ("40", "rate.limited")


@pytest.mark.usefixtures("limited", "one_minute")
def test_each_address_has_its_own_limit(client: Client) -> None:
    for _ in range(2):
        client.get(ROUNDS)
    assert client.get(ROUNDS, REMOTE_ADDR="192.0.2.7").status_code == 200


@pytest.mark.usefixtures("one_minute")
@pytest.mark.parametrize(("proxies", "status"), [(0, 429), (1, 200)])
def test_addresses_behind_proxies_are_told_apart_where_proxies_are_trusted(
    limited: Settings,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    proxies: int,
    status: int,
) -> None:
    monkeypatch.setattr("ninja.conf.settings.NUM_PROXIES", proxies)
    for last in range(2):
        client.get(ROUNDS, headers={"X-Forwarded-For": f"192.0.2.{last}"})
    told = client.get(ROUNDS, headers={"X-Forwarded-For": "192.0.2.9"})
    assert told.status_code == status


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(address: str, name: str) -> None:
    assert name_network(address) == name
