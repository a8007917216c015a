"""Seasons start, pause and end, and nodes get their arms."""

from typing import Any

from judge.models import Enrolment, Season
from judge.selectors.seasons import running_season
from judge.services.seasons import (
    end_season,
    enrol,
    pause_season,
    resume_season,
    start_season,
)
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.allowlist import GENERATOR
from tests.judge.doorbells import recorded_seasons
from tests.judge.toys import Clock, Site, make_toy_season

Assignment = Season.Assignment


# ---- seasons


def test_every_rule_that_nodes_get_is_a_field_of_the_season() -> None:
    fields = {field.name for field in Season._meta.get_fields()}
    # A message's field of another name would be sent with its default; `answers` is set separately.
    assert set(SeasonInfo.__struct_fields__) - fields == {"answers"}


def test_a_season_starts_once_and_stores_its_generator(db: None, clock: Clock) -> None:
    season, started_at = make_toy_season(), clock.now
    assert start_season(season, now=started_at)
    assert not start_season(season, now=clock.advance(5))
    season.refresh_from_db()
    assert (season.state, season.generator) == (Season.State.RUNNING, GENERATOR)
    assert season.started_at == started_at


def test_starting_a_season_ends_the_previous_one(site: Site) -> None:
    following = make_toy_season("Following")
    start_season(following, now=site.clock.now)
    site.season.refresh_from_db()
    assert (site.season.state, site.season.ended_at) == (Season.State.ENDED, site.clock.now)
    assert running_season() == following


def test_an_ended_season_cannot_start_again(site: Site) -> None:
    assert end_season(site.season, now=site.clock.now)
    assert not end_season(site.season, now=site.clock.now)
    assert not start_season(site.season, now=site.clock.now)
    assert running_season() is None


def test_a_season_is_paused_and_resumed_once(site: Site) -> None:
    assert [pause_season(site.season), pause_season(site.season)] == [True, False]
    assert [resume_season(site.season), resume_season(site.season)] == [True, False]


def test_nodes_are_notified_when_a_season_starts_and_ends(
    db: None,
    clock: Clock,
    django_capture_on_commit_callbacks: Any,
) -> None:
    season = make_toy_season()
    with recorded_seasons() as seasons, django_capture_on_commit_callbacks(execute=True):
        start_season(season, now=clock.now)
        end_season(season, now=clock.now)
    assert [rules and rules.name for rules in seasons] == ["Toys", None]


# ---- arms by choice


def test_a_node_gets_the_requested_arm_in_a_season_by_choice(site: Site) -> None:
    (node,) = site.join("amber")
    for wish in ("swarm", "isolated", "base", "swarm"):
        assert enrol(node, site.season, preferred=wish) == wish
        enrolment = Enrolment.objects.get()
        assert (enrolment.arm, enrolment.assignment) == (wish, Assignment.CHOICE)
