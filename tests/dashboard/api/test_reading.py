"""Test conditional requests, methods, and cross-origin requests of the read API."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge.models import Round, Season
from judge.services.oversight import quarantine_node
from swarm_web.nodes.models import Node
from tests.factories import make_round

ROUNDS = "/api/v1/rounds"


# ---- conditional requests


@pytest.mark.parametrize(
    "path", [ROUNDS, "/api/v1/leaderboard", "/api/v1/tasks", "/api/openapi.json"]
)
def test_unchanged_response_returns_304(judged: list[Node], client: Client, path: str) -> None:
    etag = client.get(path)["ETag"]
    again = client.get(path, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)


def test_changed_response_returns_200(season: Season, client: Client) -> None:
    etag = client.get(ROUNDS)["ETag"]
    make_round(season)
    again = client.get(ROUNDS, headers={"If-None-Match": etag})
    assert (again.status_code, len(again.json()["items"])) == (200, 1)


def test_unchanged_closed_round_returns_304_without_reading_scores(
    judged: list[Node], season: Season, client: Client
) -> None:
    path = f"{ROUNDS}/{season.rounds.latest('number').number}"
    first = client.get(path)
    known = {"If-None-Match": first["ETag"]}
    with CaptureQueriesContext(connection) as queries:
        again = client.get(path, headers=known)
    assert (again.status_code, again["ETag"]) == (304, first["ETag"])
    assert again["Cache-Control"] == first["Cache-Control"]
    assert not [query for query in queries if "cells" in query["sql"]]


def test_closed_round_is_sent_again_after_a_ruling(
    judged: list[Node], season: Season, client: Client
) -> None:
    path = f"{ROUNDS}/{season.rounds.latest('number').number}"
    known = {"If-None-Match": client.get(path)["ETag"]}
    quarantine_node(judged[0], reason="copies", actor=None, now=timezone.now())
    assert client.get(path, headers=known).status_code == 200


def test_round_is_sent_again_after_it_closed(season: Season, client: Client) -> None:
    judge_round = make_round(season)
    path = f"{ROUNDS}/{judge_round.number}"
    known = {"If-None-Match": client.get(path)["ETag"]}
    Round.objects.update(phase=Round.Phase.CLOSED, closed_at=timezone.now())
    assert client.get(path, headers=known).json()["phase"] == "closed"


def test_error_response_has_no_etag(db: None, client: Client) -> None:
    assert "ETag" not in client.get(f"{ROUNDS}/987654")


# ---- methods and cross-origin requests


def test_head_has_the_headers_of_get(season: Season, client: Client) -> None:
    head, get = client.head(ROUNDS), client.get(ROUNDS)
    assert (head.status_code, head.content, head["ETag"]) == (200, b"", get["ETag"])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_methods_return_405(db: None, client: Client, method: str) -> None:
    refusal = client.generic(method, ROUNDS)
    assert (refusal.status_code, refusal["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert refusal.json()["code"] == "method"


def test_cross_origin_reads_are_allowed(db: None, client: Client) -> None:
    answer = client.get(ROUNDS, headers={"Origin": "https://elsewhere.example"})
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert "ETag" in answer["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer


def test_cross_origin_writes_are_not_allowed(db: None, client: Client) -> None:
    asking = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    answer = client.options(ROUNDS, headers=asking)
    assert answer["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/", "/join/", "/status/"])
def test_pages_do_not_allow_cross_origin_requests(db: None, client: Client, path: str) -> None:
    answer = client.get(path, headers={"Origin": "https://elsewhere.example"})
    assert "Access-Control-Allow-Origin" not in answer
