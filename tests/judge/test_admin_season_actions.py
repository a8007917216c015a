"""Operators start, pause, end and delete seasons in the admin."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from judge.models import Round, Season
from tests.judge.conftest import SUMS
from tests.judge.operators import act, post_season, use_unknown_dataset

pytestmark = pytest.mark.django_db(transaction=True)

# ---- actions


def test_starting_a_season_ends_the_running_one(operator: Client, season: Season) -> None:
    post_season(operator, SUMS)
    act(operator, "judge/season", "start", Season.objects.get(name="Autumn").pk)
    states = dict(Season.objects.values_list("name", "state"))
    assert states == {"Autumn": "running", "Sums": "ended"}


def test_two_seasons_cannot_be_started_together(operator: Client) -> None:
    post_season(operator, SUMS)
    post_season(operator, SUMS, name="Winter")
    page = act(operator, "judge/season", "start", *Season.objects.values_list("pk", flat=True))
    assert "Only one season can run at a time" in page
    assert not Season.objects.exclude(state="draft").exists()


def test_starting_an_ended_season_does_not_affect_the_running_one(
    operator: Client, season: Season
) -> None:
    act(operator, "judge/season", "end", season.pk)
    post_season(operator, SUMS)
    act(operator, "judge/season", "start", Season.objects.get(name="Autumn").pk)
    page = act(operator, "judge/season", "start", season.pk)
    assert "Sums: nothing changed, it is ended." in page
    assert Season.objects.get(name="Autumn").state == "running"


def test_a_season_is_paused_and_resumed(operator: Client, season: Season) -> None:
    act(operator, "judge/season", "pause", season.pk)
    season.refresh_from_db()
    assert season.paused
    act(operator, "judge/season", "resume", season.pk)
    season.refresh_from_db()
    assert not season.paused


def test_history_of_a_season_names_who_paused_it(operator: Client, season: Season) -> None:
    for _ in range(2):  # The second changes nothing.
        act(operator, "judge/season", "pause", season.pk)
    entry = LogEntry.objects.get(object_id=str(season.pk))
    assert (entry.user.is_superuser, entry.get_change_message()) == (True, "Paused.")


def test_pausing_a_paused_season_changes_nothing(operator: Client, season: Season) -> None:
    act(operator, "judge/season", "pause", season.pk)
    page = act(operator, "judge/season", "pause", season.pk)
    assert "Sums: nothing changed, it is paused." in page


def test_a_round_is_added_by_an_action(operator: Client, season: Season) -> None:
    page = act(operator, "judge/season", "add_round", season.pk)
    assert "round 1 opens in a moment" in page
    assert Round.objects.get().season == season


def test_a_draft_gets_no_round(operator: Client) -> None:
    post_season(operator, SUMS)
    page = act(operator, "judge/season", "add_round", Season.objects.get().pk)
    assert "Autumn: nothing changed, it is draft." in page
    assert not Round.objects.exists()


def test_a_round_whose_questions_cannot_be_drawn_is_an_error_with_a_remedy(
    operator: Client, season: Season
) -> None:
    remedy = use_unknown_dataset(season)
    page = act(operator, "judge/season", "add_round", season.pk)
    assert f"Sums: {remedy}" in page


# ---- deletion


def test_a_draft_can_be_deleted(operator: Client) -> None:
    post_season(operator, SUMS)
    operator.post(f"/admin/judge/season/{Season.objects.get().pk}/delete/", {"post": "yes"})
    assert not Season.objects.exists()


def test_a_started_season_cannot_be_deleted(operator: Client, season: Season) -> None:
    path = f"/admin/judge/season/{season.pk}/delete/"
    assert operator.post(path, {"post": "yes"}).status_code == 403


def test_a_started_season_cannot_be_deleted_from_the_list(operator: Client, season: Season) -> None:
    operator.post(
        "/admin/judge/season/",
        {"action": "delete_selected", "_selected_action": [season.pk], "post": "yes"},
    )
    assert Season.objects.exists()
