"""Test that the read API contains the content of the task pages."""

from typing import Any

import pytest
from django.test import Client

from judge.models import Round, Season
from swarm_web.nodes.models import Node
from tests.factories import make_archived_rollout, make_node, make_round

TASKS = "/api/v1/tasks"


def read_line(client: Client) -> dict[str, Any]:
    """Return the item of the dataset that the tests' rounds use."""
    (line,) = (line for line in client.get(TASKS).json()["items"] if line["dataset"] == "chain_sum")
    return dict(line)


def test_datasets_are_listed_with_the_share_that_each_arm_solves(
    judged: list[Node], client: Client
) -> None:
    content = client.get(TASKS).json()
    assert content["season"] == "Autumn"
    assert sum(item["weight"] for item in content["items"]) == pytest.approx(1)
    item = read_line(client)
    # Of 16 questions in two rounds the three nodes solve 16, 15 and 14.
    (rate,) = item["rates"].values()
    assert (rate["share"], rate["n"]) == (0.9375, 96)
    assert rate["interval"][0] < 0.9375 < rate["interval"][1]
    assert 1 <= item["level"] <= item["levels"]
    assert item["informative"] is None


def test_dataset_has_the_informative_share(season: Season, client: Client) -> None:
    author, _ = make_node()
    for solved in (0, 1):
        make_archived_rollout(season, author, solved=solved, dataset="chain_sum")
    item = read_line(client)
    assert (item["informative"]["share"], item["informative"]["n"]) == (0.5, 2)


def test_dataset_has_pass_rates_by_round_and_its_hardest_questions(
    judged: list[Node], season: Season, client: Client
) -> None:
    content = client.get(f"{TASKS}/chain_sum").json()
    rounds = list(season.rounds.order_by("-number").values_list("number", flat=True))
    assert [rate["round"] for rate in content["pass_rates"]] == rounds
    assert (content["pass_rates"][0]["share"], content["pass_rates"][0]["n"]) == (0.9375, 96)
    assert len(content["hardest"]) == 5
    assert content["hardest"][0]["solved"] < content["easiest"][0]["solved"] <= 3


def test_questions_of_an_open_round_are_not_contained(season: Season, client: Client) -> None:
    make_round(season, phase=Round.Phase.OPEN)
    item = read_line(client)
    assert item["example"] == ""
    content = client.get(f"{TASKS}/chain_sum").json()
    assert (content["hardest"], content["easiest"], content["pass_rates"]) == ([], [], [])


def test_dataset_outside_the_season_returns_404(season: Season, client: Client) -> None:
    refusal = client.get(f"{TASKS}/none")
    assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")


def test_task_list_is_empty_before_the_first_season(db: None, client: Client) -> None:
    assert client.get(TASKS).json() == {"season": None, "items": []}
