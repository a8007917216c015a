"""Test the state token of pages, which changes with content that deltas do not contain."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Round, Ruling, Season
from swarm_web.dashboard.models import Announcement
from swarm_web.dashboard.reports.home import read_state
from tests.factories import make_node, make_round, publish


def open_round(season: Season) -> None:
    make_round(season, phase=Round.Phase.OPEN)


def close_round(season: Season) -> None:
    make_round(season, phase=Round.Phase.CLOSED)
    publish(season)


def rule(_season: Season) -> None:
    Ruling.objects.create(action=Ruling.Action.VOID, reason="odd", made_at=timezone.now())


def announce(_season: Season) -> None:
    now = timezone.now()
    Announcement.objects.create(text="news", starts_at=now, ends_at=now + timedelta(hours=1))


@pytest.mark.parametrize("change", [open_round, close_round, rule, announce])
def test_state_changes_with_rounds_rulings_and_announcements(
    change: Callable[[Season], None], season: Season
) -> None:
    before = read_state()
    assert read_state() == before
    change(season)
    assert read_state() != before


def test_state_changes_when_an_announcement_is_edited(season: Season) -> None:
    announce(season)
    before = read_state()
    Announcement.objects.update(text="news, corrected")
    assert read_state() != before


def test_state_does_not_change_with_presence(season: Season) -> None:
    before = read_state()
    make_node("amber", last_seen=timezone.now())
    assert read_state() == before


def test_pages_contain_the_state_and_other_responses_do_not_read_it(
    season: Season, client: Client
) -> None:
    (token,) = re.findall(r'data-state="(\w+)"', client.get("/tasks/").text)
    assert token == read_state()
    assert not hasattr(client.get("/healthz").wsgi_request, "page_state")
