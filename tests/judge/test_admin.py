"""Operators configure seasons and rounds in the admin, and mistakes are caught there."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from judge.models import Round, Season
from tests.judge.conftest import SUMS, Clock

pytestmark = pytest.mark.django_db(transaction=True)

RULES = {
    "name": "Autumn",
    "completions": 8,
    "local": 4,
    "external": 4,
    "questions_per_round": 4,
    "cadence_seconds": 120,
    "open_seconds": 60,
    "scoring_seconds": 30,
    "max_new_tokens": 64,
    "temperature": 0,
}


@pytest.fixture
def operator(transactional_db: None) -> Client:
    """A superuser's browser."""
    client = Client()
    client.force_login(User.objects.create_superuser("olive"))
    return client


def post_season(operator: Client, tasks: Any, **changes: Any) -> str:
    response = operator.post(
        "/admin/judge/season/add/",
        {**RULES, "tasks": json.dumps(tasks), **changes},
        follow=True,
    )
    return response.content.decode()


def act(operator: Client, model: str, action: str, pk: int) -> str:
    response = operator.post(
        f"/admin/judge/{model}/",
        {"action": action, "_selected_action": [pk]},
        follow=True,
    )
    return response.content.decode()


def test_a_valid_season_is_saved_and_a_sample_of_each_dataset_is_shown(operator: Client) -> None:
    page = post_season(operator, SUMS)
    assert Season.objects.get().name == "Autumn"
    assert "Sample of chain_sum: <q>State the final answer" in page


def test_a_dataset_outside_the_allow_list_is_refused_with_its_name(operator: Client) -> None:
    page = post_season(operator, [{"dataset": "countdown", "config": {}, "weight": 1}])
    assert not Season.objects.exists()
    assert "countdown" in page


def test_a_configuration_outside_its_range_is_refused_with_the_field(operator: Client) -> None:
    tasks = [{"dataset": "chain_sum", "config": {"max_terms": 10_000}, "weight": 1}]
    page = post_season(operator, tasks)
    assert not Season.objects.exists()
    assert "max_terms" in page


@pytest.mark.parametrize("tasks", [[], {}, [{"dataset": "gcd"}], [1], [*SUMS, *SUMS]])
def test_a_malformed_task_mix_is_refused(operator: Client, tasks: Any) -> None:
    post_season(operator, tasks)
    assert not Season.objects.exists()


def test_a_weight_of_nothing_is_refused(operator: Client) -> None:
    post_season(operator, [{**SUMS[0], "weight": 0}])
    assert not Season.objects.exists()


def test_rounds_that_would_overlap_are_refused(operator: Client) -> None:
    page = post_season(operator, SUMS, cadence_seconds=30)
    assert "still be open" in page
    assert not Season.objects.exists()


def test_starting_a_season_ends_the_one_that_runs(operator: Client, season: Season) -> None:
    post_season(operator, SUMS)
    act(operator, "season", "start", Season.objects.get(name="Autumn").pk)
    states = dict(Season.objects.values_list("name", "state"))
    assert states == {"Autumn": "running", "Sums": "ended"}


def test_a_started_seasons_rules_are_frozen(operator: Client, season: Season) -> None:
    changed = [{**SUMS[0], "weight": 2}]
    operator.post(
        f"/admin/judge/season/{season.pk}/change/",
        {**RULES, "name": "Sums", "tasks": json.dumps(changed), "open_seconds": 50},
    )
    season.refresh_from_db()
    assert (season.tasks, season.open_seconds) == (SUMS, 50)


def test_a_season_is_paused_and_resumed(operator: Client, season: Season) -> None:
    act(operator, "season", "pause", season.pk)
    season.refresh_from_db()
    assert season.paused
    act(operator, "season", "resume", season.pk)
    season.refresh_from_db()
    assert not season.paused


def test_a_round_is_scheduled_by_hand_with_its_questions(
    operator: Client, season: Season, clock: Clock
) -> None:
    opens = clock.advance(3600)
    operator.post(
        "/admin/judge/round/add/",
        {
            "season": season.pk,
            "opens_at_0": opens.strftime("%Y-%m-%d"),
            "opens_at_1": opens.strftime("%H:%M:%S"),
            "questions-TOTAL_FORMS": 0,
            "questions-INITIAL_FORMS": 0,
        },
    )
    made = Round.objects.get()
    assert (made.phase, made.questions.count()) == ("scheduled", 4)


def test_a_round_is_voided(operator: Client, open_round: Round) -> None:
    act(operator, "round", "void", open_round.pk)
    open_round.refresh_from_db()
    assert open_round.phase == Round.Phase.VOID


def test_a_new_nodes_token_is_shown_once_and_works(operator: Client) -> None:
    from swarm_web.nodes.services import authenticate

    page = operator.post(
        "/admin/nodes/node/add/", {"name": "amber-quiet-heron", "arm": "swarm"}, follow=True
    ).content.decode()
    token = page.split("shown only now: ")[1].split("<")[0].strip()
    node = authenticate(token)
    assert node is not None
    assert node.name == "amber-quiet-heron"
    assert token not in operator.get("/admin/nodes/node/").content.decode()
