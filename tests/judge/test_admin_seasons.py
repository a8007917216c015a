"""Operators configure seasons in the admin, which validates the settings."""

import html
import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from judge.models import Season, Standing
from judge.services.seasons import announce_rules
from swarm_tasks.starter import YEAR_TASKS
from swarm_tasks.verifier import Verifier
from tests.judge.conftest import SUMS, Clock
from tests.judge.crew import PATIENCE_S, Crew, wait_for_blocked_lock
from tests.judge.doorbells import recorded_seasons
from tests.judge.operators import (
    RULES,
    act,
    change_season,
    play_round,
    post_season,
    standing_of,
    use_unknown_dataset,
)

pytestmark = pytest.mark.django_db(transaction=True)

PRODUCTS = {"dataset": "products", "config": {"min_digits": 2, "max_digits": 2}, "weight": 3.0}


# ---- drafts


def test_a_new_seasons_form_has_a_mix_for_a_year(operator: Client) -> None:
    page = html.unescape(operator.get("/admin/judge/season/add/").content.decode())
    assert all(f'\n  {{"dataset": "{task.dataset}", "config": {{' in page for task in YEAR_TASKS)


def test_a_stored_task_mix_is_shown_with_one_task_per_line(operator: Client) -> None:
    post_season(operator, [*SUMS, PRODUCTS])
    page = operator.get(f"/admin/judge/season/{Season.objects.get().pk}/change/").content.decode()
    for dataset in ("chain_sum", "products"):
        assert f'\n  {{"dataset": "{dataset}", "config": {{' in html.unescape(page)


def test_an_invalid_task_mix_is_shown_again_unchanged(operator: Client) -> None:
    assert '[{"dataset": "gcd"}]' in post_season(operator, [{"dataset": "gcd"}])


def test_a_sample_of_each_dataset_is_shown_with_its_share_of_the_questions(
    operator: Client,
) -> None:
    page = post_season(operator, [*SUMS, PRODUCTS], questions_per_round=10)
    assert Season.objects.get().name == "Autumn"
    assert "Sample of chain_sum, 3 of 10 questions in a round: <q>State the final answer" in page
    assert "Sample of products, 7 of 10 questions in a round: <q>" in page


def test_a_seasons_page_shows_how_many_questions_of_each_dataset_a_round_asks(
    operator: Client,
) -> None:
    post_season(operator, [*SUMS, PRODUCTS], questions_per_round=10)
    page = operator.get(f"/admin/judge/season/{Season.objects.get().pk}/change/")
    assert "chain_sum 3, products 7" in page.content.decode()


def test_every_field_of_a_draft_is_stored(operator: Client) -> None:
    typed = {
        "assignment": "coin",
        "isolated_share": 0.25,
        "trial_rounds": 96,
        "isolated_publish": True,
        "late_joiners": "join",
        "recent_rounds": 7,
        "minimum_questions": 64,
        "minimum_client": "1.2.0",
        "next_minimum_client": "1.3.0",
    }
    post_season(operator, SUMS, **typed)
    assert Season.objects.values(*typed).get() == typed


def test_an_unchecked_early_advance_is_off(operator: Client) -> None:
    response = operator.post(
        "/admin/judge/season/add/",
        {k: v for k, v in RULES.items() if k != "early_advance"} | {"tasks": json.dumps(SUMS)},
    )
    assert response.status_code == 302
    assert not Season.objects.get().early_advance


# ---- the number of rounds that the questions last


FEW = {"dataset": "gcd", "config": {"max_numbers": 2, "max_value": 40}, "weight": 1.0}


def test_a_mix_with_too_few_questions_for_the_planned_rounds_is_refused(operator: Client) -> None:
    page = post_season(operator, [FEW], planned_rounds=1000)
    assert not Season.objects.exists()
    assert "gcd has questions for about 58 rounds (at least " in page
    assert "but 1,000 are planned: widen its ranges" in page


def test_the_mix_must_last_for_a_year_without_planned_rounds(operator: Client) -> None:
    page = post_season(operator, [FEW], planned_rounds="")
    assert not Season.objects.exists()
    assert "262,800 are planned" in page, "one round every two minutes"


def test_the_form_shows_how_many_rounds_each_dataset_lasts(operator: Client) -> None:
    page = post_season(operator, [FEW], planned_rounds=10)
    assert "Its questions last for about 58 rounds (at least " in page
    page = operator.get(f"/admin/judge/season/{Season.objects.get().pk}/change/").content.decode()
    assert "gcd about 58 rounds (at least " in page
    assert "0 rounds have been made" in page


def test_a_draft_with_too_few_questions_is_not_started(operator: Client) -> None:
    """An earlier version of the site accepted such drafts."""
    post_season(operator, [FEW], planned_rounds=10)
    Season.objects.update(planned_rounds=1000)
    page = act(operator, "judge/season", "start", Season.objects.get().pk)
    assert Season.objects.get().state == Season.State.DRAFT
    assert "was not started. gcd has questions for about 58 rounds" in page


def test_a_season_with_a_dataset_that_is_no_longer_allowed_is_shown(operator: Client) -> None:
    """An update of the generator may remove a dataset that an older season names."""
    post_season(operator, SUMS)
    season = Season.objects.get()
    reason = use_unknown_dataset(season).partition(". ")[0]
    page = operator.get(f"/admin/judge/season/{season.pk}/change/").content.decode()
    assert f"not measured: {reason}" in html.unescape(page)


def test_a_draft_with_a_dataset_that_is_no_longer_allowed_is_not_started(operator: Client) -> None:
    post_season(operator, SUMS)
    season = Season.objects.get()
    reason = use_unknown_dataset(season).partition(". ")[0]
    page = act(operator, "judge/season", "start", season.pk)
    assert f"was not started. {reason}" in page
    assert Season.objects.get().state == Season.State.DRAFT


# ---- validation


def test_a_dataset_outside_the_allow_list_is_refused_with_its_name(operator: Client) -> None:
    page = post_season(operator, [{"dataset": "countdown", "config": {}, "weight": 1}])
    assert not Season.objects.exists()
    assert "countdown: " in page


def test_a_configuration_outside_its_range_is_refused_with_the_field(operator: Client) -> None:
    tasks = [{"dataset": "chain_sum", "config": {"max_terms": 10_000}, "weight": 1}]
    page = post_season(operator, tasks)
    assert not Season.objects.exists()
    assert "max_terms" in page


@pytest.mark.parametrize("tasks", [[], {}, [{"dataset": "gcd"}], [1], [*SUMS, *SUMS]])
def test_a_malformed_task_mix_is_refused(operator: Client, tasks: Any) -> None:
    post_season(operator, tasks)
    assert not Season.objects.exists()


def test_a_weight_of_zero_is_refused(operator: Client) -> None:
    post_season(operator, [{**SUMS[0], "weight": 0}])
    assert not Season.objects.exists()


def test_fewer_questions_than_datasets_are_refused_with_both_numbers(operator: Client) -> None:
    page = post_season(operator, [*SUMS, PRODUCTS], questions_per_round=1)
    assert not Season.objects.exists()
    assert "1 questions cannot cover 2 datasets" in page


def test_more_own_rollouts_than_are_generated_are_refused(operator: Client) -> None:
    page = post_season(operator, SUMS, local=9, batch=8)
    assert "Nodes generate 8 rollouts in a step" in page
    assert not Season.objects.exists()


def test_rounds_that_would_overlap_are_refused(operator: Client) -> None:
    page = post_season(operator, SUMS, cadence_seconds=30)
    assert "still be open" in page
    assert not Season.objects.exists()


def test_a_next_minimum_below_the_current_one_is_refused(operator: Client) -> None:
    page = post_season(operator, SUMS, minimum_client="0.10.0", next_minimum_client="0.9.0")
    assert "Clients older than 0.10.0 are already refused" in page
    assert not Season.objects.exists()


def test_a_next_minimum_below_the_sites_own_is_refused(operator: Client, settings: Any) -> None:
    settings.MINIMUM_CLIENT_VERSION = "0.5.0"
    page = post_season(operator, SUMS, next_minimum_client="0.4.0")
    assert "Clients older than 0.5.0 are already refused" in page


def test_an_invalid_version_is_refused(operator: Client) -> None:
    page = post_season(operator, SUMS, minimum_client="1.2", next_minimum_client="soon")
    assert page.count("Give a version such as 1.2.3.") == 2


# ---- started seasons


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("tasks", json.dumps([{**SUMS[0], "weight": 2}])),
        ("questions_per_round", 8),
        ("completions", 16),
        ("max_new_tokens", 32),
        ("temperature", 1),
        ("system_prompt", "Another <answer>prompt</answer>."),
        ("assignment", "coin"),
        ("isolated_share", 0.1),
        ("trial_rounds", 96),
        ("isolated_publish", True),
    ],
)
def test_fields_that_scores_depend_on_are_frozen_once_a_season_has_started(
    operator: Client, season: Season, field: str, typed: object
) -> None:
    before = getattr(season, field)
    change_season(operator, season, **{field: typed})
    season.refresh_from_db()
    assert getattr(season, field) == before


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("open_seconds", 50),
        ("early_advance", False),
        ("late_joiners", "join"),
        ("minimum_client", "0.2.0"),
        ("recent_rounds", 3),
        ("minimum_questions", 8),
    ],
)
def test_fields_that_scores_do_not_depend_on_can_be_changed_at_any_time(
    operator: Client, season: Season, field: str, typed: object
) -> None:
    change_season(operator, season, **{field: typed or ""})
    season.refresh_from_db()
    assert getattr(season, field) == typed


def test_nodes_are_notified_when_a_rule_of_the_running_season_changes(
    operator: Client, season: Season
) -> None:
    with recorded_seasons() as seasons:
        change_season(operator, season, external=12)
    assert [rules and rules.external for rules in seasons] == [12]


def test_nodes_are_not_notified_of_rules_if_the_season_has_ended_meanwhile(
    operator: Client, season: Season
) -> None:
    Season.objects.update(state=Season.State.ENDED)
    with recorded_seasons() as seasons:
        announce_rules(season)
    assert seasons == []


def test_nodes_are_not_notified_when_a_field_changes_that_they_do_not_get(
    operator: Client, season: Season
) -> None:
    change_season(operator, season, batch=16, sampling=["fresh"])
    with recorded_seasons() as seasons:
        change_season(operator, season, batch=16, sampling=["fresh"], minimum_questions=8)
    assert seasons == []


def test_saving_does_not_overwrite_a_concurrent_change_by_a_tick(
    operator: Client, season: Season, clock: Clock, crew: Crew
) -> None:
    with transaction.atomic():
        Season.objects.filter(pk=season.pk).update(watched_at=clock.now)
        saving = crew.start(lambda: change_season(operator, season, open_seconds=50))
        wait_for_blocked_lock()
    saving.result(PATIENCE_S)
    season.refresh_from_db()
    assert (season.open_seconds, season.watched_at) == (50, clock.now)


def test_the_leaderboard_is_updated_when_the_minimum_of_questions_changes(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    play_round(season, clock, verifier, amber=4)
    assert standing_of("amber", "season").remark == Standing.Remark.TOO_FEW
    change_season(operator, season, minimum_questions=4)
    assert standing_of("amber", "season").rank_low == 1


@pytest.mark.slow
def test_the_leaderboard_is_updated_when_the_number_of_recent_rounds_changes(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    play_round(season, clock, verifier, amber=0)
    play_round(season, clock, verifier, amber=4)
    assert standing_of("amber", "recent").score == 0.5
    change_season(operator, season, recent_rounds=1)
    assert standing_of("amber", "recent").score == 1
