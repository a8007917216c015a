"""Test the round pill: it shows a countdown only if the next event depends on the clock alone."""

from datetime import datetime

import pytest
from django.test import Client
from django.utils import timezone

from judge.engine import Phase
from judge.models import Season
from judge.services.seasons import end_season, pause_season
from swarm_tasks.beacon import QUICKNET
from swarm_web.dashboard.reports.home import Pill, read_pill
from tests.factories import make_round, make_season


def read() -> Pill:
    return read_pill(now=timezone.now())


def read_page(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


@pytest.mark.parametrize("phase", [Phase.SCHEDULED, Phase.OPEN, Phase.SCORING])
def test_pill_counts_down_to_the_end_of_the_phase(season: Season, phase: Phase) -> None:
    made = make_round(season, phase=phase)
    ends: dict[Phase, datetime] = {Phase.SCHEDULED: made.opens_at, Phase.OPEN: made.closes_at}
    pill = read()
    assert (pill.number, pill.phase, pill.until) == (made.number, phase, ends.get(phase))


def test_scheduled_round_in_a_paused_season_has_no_countdown(
    season: Season, client: Client
) -> None:
    made = make_round(season, phase=Phase.SCHEDULED)
    pause_season(season)
    pill = read()
    assert (pill.number, pill.phase, pill.until) == (made.number, "paused", None)
    for path in ("/", made.get_absolute_url()):
        html = read_page(client, path)
        assert "The season is paused" in html
        assert "countdown" not in html
    assert f"Round {made.number} is waiting: the season is paused" in read_page(
        client, made.get_absolute_url()
    )
    answer = client.get("/api/v1/status").json()
    assert (answer["phase"], answer["until"]) == ("paused", None)


def test_round_that_waits_for_the_beacon_has_no_countdown(season: Season, client: Client) -> None:
    made = make_round(season, phase=Phase.SCHEDULED)
    made.rules["beacon"] = {"chain": QUICKNET, "round": 1000}
    made.save()
    assert (read().phase, read().until) == ("scheduled", None)
    for path in ("/", made.get_absolute_url()):
        html = read_page(client, path)
        assert "opens soon" in html
        assert "countdown" not in html
    made.beacon = {"round": 1000}
    made.save()
    assert read().until == made.opens_at


def test_paused_season_finishes_its_open_round(season: Season) -> None:
    made = make_round(season, phase=Phase.OPEN)
    pause_season(season)
    assert (read().phase, read().until) == ("open", made.closes_at)


def test_pill_between_rounds_shows_whether_the_season_is_paused(season: Season) -> None:
    make_round(season, phase=Phase.CLOSED)
    assert (read().season, read().phase) == ("Autumn", "none")
    pause_season(season)
    assert (read().season, read().phase) == ("Autumn", "paused")


def test_season_with_manual_rounds_promises_none(db: None, client: Client) -> None:
    season = make_season("By hand", cadence_seconds=0)
    assert (read().season, read().phase) == ("By hand", "manual")
    home = read_page(client, "/")
    assert "No round is scheduled" in home
    assert "being prepared" not in home
    made = make_round(season, phase=Phase.SCHEDULED)
    assert (read().phase, read().until) == ("scheduled", made.opens_at)


@pytest.mark.parametrize("phase", [Phase.OPEN, Phase.SCORING])
def test_ended_season_finishes_its_last_round(season: Season, client: Client, phase: Phase) -> None:
    made = make_round(season, phase=phase)
    end_season(season, now=timezone.now())
    pill = read()
    assert (pill.season, pill.number, pill.phase) == ("Autumn", made.number, phase)
    assert "No season is running" not in read_page(client, "/")


def test_pill_without_a_season_is_empty(season: Season) -> None:
    make_round(season, phase=Phase.CLOSED)
    end_season(season, now=timezone.now())
    assert (read().season, read().number, read().phase) == (None, None, "none")
