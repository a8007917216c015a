"""Test the request limit per network address."""

import pytest
from django.test import Client
from pytest_django import Settings

from judge.models import Season
from swarm_web.core.store import sync_redis
from swarm_web.dashboard.api.reading import PERIOD_S
from swarm_web.nodes.models import Node

ROUNDS = "/api/v1/rounds"


@pytest.fixture
def limited(db: None, settings: Settings) -> Settings:
    """Allow two requests per minute, with empty counters."""
    settings.API_REQUESTS_PER_MINUTE = 2
    sync_redis().flushdb()
    return settings


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the limit."""
    monkeypatch.setattr("swarm_web.dashboard.api.reading.time.time", lambda: 1000 * PERIOD_S + 20)


@pytest.mark.usefixtures("limited", "one_minute")
def test_too_many_requests_return_429_with_retry_after(client: Client) -> None:
    codes = [client.get(ROUNDS).status_code for _ in range(3)]
    refusal = client.get(ROUNDS)
    assert codes == [200, 200, 429]
    assert (refusal["Retry-After"], refusal.json()["code"]) == ("40", "rate.limited")


@pytest.mark.usefixtures("limited", "one_minute")
def test_each_address_has_its_own_limit(client: Client) -> None:
    for _ in range(2):
        client.get(ROUNDS)
    assert client.get(ROUNDS, REMOTE_ADDR="192.0.2.7").status_code == 200


@pytest.fixture
def long_round(judged: list[Node], season: Season, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a closed round with three nodes, with one row per page."""
    monkeypatch.setattr("swarm_web.dashboard.api.reading.MAX_PAGE", 1)
    return f"{ROUNDS}/{season.rounds.latest('number').number}"


@pytest.mark.usefixtures("limited", "one_minute")
def test_round_with_many_scores_counts_as_several_requests(client: Client, long_round: str) -> None:
    assert [client.get(long_round).status_code for _ in range(2)] == [200, 429]


@pytest.mark.usefixtures("one_minute")
def test_unchanged_round_counts_as_one_request(
    limited: Settings, client: Client, long_round: str
) -> None:
    limited.API_REQUESTS_PER_MINUTE = 5
    known = {"If-None-Match": client.get(long_round)["ETag"]}
    codes = [client.get(long_round, headers=known).status_code for _ in range(3)]
    assert codes == [304, 304, 429]
