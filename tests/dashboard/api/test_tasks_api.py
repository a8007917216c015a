"""The read API tells of a season's tasks what their pages show."""

from typing import Any

import pytest
from django.test import Client

from judge.models import Round, Season
from swarm_web.nodes.models import Node
from tests.factories import make_archived_rollout, make_node, make_round

TASKS = "/api/v1/tasks"


def read_line(client: Client) -> dict[str, Any]:
    """Return what the list tells of the dataset that rounds of tests ask."""
    (line,) = (line for line in client.get(TASKS).json()["items"] if line["dataset"] == "chain_sum")
    return dict(line)


def test_the_seasons_datasets_are_told_with_the_share_that_each_arm_solves(
    judged: list[Node], client: Client
) -> None:
    told = client.get(TASKS).json()
    assert told["season"] == "Autumn"
    assert sum(item["weight"] for item in told["items"]) == pytest.approx(1)
    item = read_line(client)
    # Of 16 questions in two rounds the three nodes solve 16, 15 and 14.
    (rate,) = item["rates"].values()
    assert (rate["share"], rate["n"]) == (0.9375, 96)
    assert rate["interval"][0] < 0.9375 < rate["interval"][1]
    assert 1 <= item["level"] <= item["levels"]
    assert item["informative"] is None


def test_the_informative_share_is_told(season: Season, client: Client) -> None:
    author, _ = make_node()
    for solved in (0, 1):
        make_archived_rollout(season, author, solved=solved, dataset="chain_sum")
    item = read_line(client)
    assert (item["informative"]["share"], item["informative"]["n"]) == (0.5, 2)


def test_a_dataset_tells_its_pass_rates_newest_first_and_its_hardest_questions(
    judged: list[Node], season: Season, client: Client
) -> None:
    told = client.get(f"{TASKS}/chain_sum").json()
    rounds = list(season.rounds.order_by("-number").values_list("number", flat=True))
    assert [rate["round"] for rate in told["pass_rates"]] == rounds
    assert (told["pass_rates"][0]["share"], told["pass_rates"][0]["n"]) == (0.9375, 96)
    assert len(told["hardest"]) == 5
    assert told["hardest"][0]["solved"] < told["easiest"][0]["solved"] <= 3


def test_questions_of_an_open_round_are_not_told(season: Season, client: Client) -> None:
    make_round(season, phase=Round.Phase.OPEN)
    item = read_line(client)
    assert item["example"] == ""
    told = client.get(f"{TASKS}/chain_sum").json()
    assert (told["hardest"], told["easiest"], told["pass_rates"]) == ([], [], [])


def test_a_dataset_that_the_season_does_not_ask_is_not_found(
    season: Season, client: Client
) -> None:
    refusal = client.get(f"{TASKS}/none")
    assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")


def test_before_the_first_season_there_are_no_tasks(db: None, client: Client) -> None:
    assert client.get(TASKS).json() == {"season": None, "items": []}
