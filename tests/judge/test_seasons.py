"""Seasons begin, pause and end, and nodes get their arms in them."""

from typing import Any

import pytest

from judge.models import Enrolment, Season
from judge.selectors import coin_share, running_season
from judge.services.seasons import (
    end_season,
    enrol,
    flip_coin,
    pause_season,
    resume_season,
    start_season,
)
from swarm_protocol.codec import decode_from_server
from swarm_protocol.messages import SeasonState
from swarm_tasks.allowlist import GENERATOR
from swarm_web import bus
from swarm_web.nodes.models import Node
from swarm_web.store import sync_redis
from tests.judge.toys import Clock, Site, make_toy_season

Assignment = Season.Assignment


@pytest.fixture
def coin(site: Site) -> Site:
    """A site whose season assigns arms by coin."""
    Season.objects.update(assignment=Assignment.COIN)
    site.season.refresh_from_db()
    return site


def make_nodes(count: int) -> list[Node]:
    return Node.objects.bulk_create(Node(name=f"n{i}", token_hash=str(i)) for i in range(count))


def arms_of(nodes: list[Node], season: Season) -> list[str]:
    return [enrol(node, season, wish="swarm") for node in nodes]


# ---- seasons


def test_a_season_starts_once_and_keeps_its_generator(db: None, clock: Clock) -> None:
    season, started_at = make_toy_season(), clock.now
    assert start_season(season, now=started_at)
    assert not start_season(season, now=clock.advance(5))
    season.refresh_from_db()
    assert (season.state, season.generator) == (Season.State.RUNNING, GENERATOR)
    assert season.started_at == started_at


def test_a_season_that_starts_ends_the_one_before(site: Site) -> None:
    following = make_toy_season("Following")
    start_season(following, now=site.clock.now)
    site.season.refresh_from_db()
    assert (site.season.state, site.season.ended_at) == (Season.State.ENDED, site.clock.now)
    assert running_season() == following


def test_a_season_that_ended_starts_no_more(site: Site) -> None:
    assert end_season(site.season, now=site.clock.now)
    assert not end_season(site.season, now=site.clock.now)
    assert not start_season(site.season, now=site.clock.now)
    assert running_season() is None


def test_a_season_is_paused_and_resumed_once(site: Site) -> None:
    assert [pause_season(site.season), pause_season(site.season)] == [True, False]
    assert [resume_season(site.season), resume_season(site.season)] == [True, False]


def test_nodes_are_told_when_a_season_begins_and_when_it_ends(
    db: None,
    clock: Clock,
    django_capture_on_commit_callbacks: Any,
) -> None:
    season = make_toy_season()
    with sync_redis().pubsub() as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe(bus.NODES)
        heard = subscription.listen()
        assert next(heard)["type"] == "subscribe"
        with django_capture_on_commit_callbacks(execute=True):
            start_season(season, now=clock.now)
            end_season(season, now=clock.now)
        sync_redis().publish(bus.NODES, "the end")
        rung = iter(lambda: next(heard)["data"].decode(), "the end")
        told = [
            message.season and message.season.name
            for message in map(decode_from_server, rung)
            if isinstance(message, SeasonState)
        ]
    assert told == ["Toys", None]


# ---- arms by choice


def test_by_choice_a_node_is_in_the_arm_it_wishes_and_may_change_it(site: Site) -> None:
    (node,) = site.join("amber")
    for wish in ("swarm", "isolated", "base", "swarm"):
        assert enrol(node, site.season, wish=wish) == wish
        kept = Enrolment.objects.get()
        assert (kept.arm, kept.assignment) == (wish, Assignment.CHOICE)


# ---- arms by coin


def test_a_coin_asks_nobody(coin: Site) -> None:
    nodes = make_nodes(20)
    wished = [enrol(node, coin.season, wish="swarm") for node in nodes]
    assert set(wished) == {"swarm", "isolated"}
    Enrolment.objects.all().delete()
    assert [enrol(node, coin.season, wish="isolated") for node in nodes] == wished
    assert set(Enrolment.objects.values_list("assignment", flat=True)) == {Assignment.COIN}


def test_a_coin_is_flipped_once(coin: Site) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    assert [arms_of(nodes, coin.season) for _ in range(3)] == 3 * [first]
    assert Enrolment.objects.count() == 20


def test_a_coin_is_not_flipped_again_by_playing_base_for_a_while(coin: Site) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    for node in nodes:
        assert enrol(node, coin.season, wish="base") == "base"
    assert arms_of(nodes, coin.season) == first


def test_a_coin_that_was_flipped_stays_although_the_share_or_the_secret_changes(
    coin: Site, settings: Any
) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    coin.season.isolated_share = 0.05
    settings.SECRET_KEY = "another one"
    assert arms_of(nodes, coin.season) == first


def test_nobody_without_the_secret_can_foresee_the_coin(coin: Site, settings: Any) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    Enrolment.objects.all().delete()
    settings.SECRET_KEY = "another one"
    assert arms_of(nodes, coin.season) != first


def test_another_season_flips_another_coin(coin: Site) -> None:
    other = make_toy_season("Others")
    other.assignment = Assignment.COIN
    nodes = make_nodes(20)
    assert arms_of(nodes, coin.season) != arms_of(nodes, other)


@pytest.mark.parametrize("share", [0.05, 0.25, 0.5])
def test_a_coin_isolates_the_share_that_the_season_says(settings: Any, share: float) -> None:
    # All that the coin depends on is fixed, so that this never fails by chance.
    settings.SECRET_KEY = "fixed"
    season = Season(pk=10**6, assignment=Assignment.COIN, isolated_share=share)
    flips = [flip_coin(Node(pk=pk), season) for pk in range(10**6, 10**6 + 600)]
    isolated = flips.count(Node.Arm.ISOLATED)
    assert abs(isolated - 600 * share) < 3 * (600 * share * (1 - share)) ** 0.5


def test_an_untrained_node_is_in_no_arm_whoever_decides(coin: Site) -> None:
    (node,) = coin.join("amber")
    assert enrol(node, coin.season, wish="base") == "base"
    kept = Enrolment.objects.get()
    assert (kept.arm, kept.assignment) == ("base", Assignment.CHOICE)


def test_a_season_that_turns_to_coins_flips_them_for_those_who_had_chosen(site: Site) -> None:
    nodes = make_nodes(20)
    assert set(arms_of(nodes, site.season)) == {"swarm"}
    site.season.assignment = Assignment.COIN
    assert set(arms_of(nodes, site.season)) == {"swarm", "isolated"}


def test_how_many_nodes_a_coin_assigned_is_told(coin: Site) -> None:
    amber, birch, bare = coin.join("amber", "birch", "bare")
    enrol(amber, coin.season, wish="swarm")
    enrol(bare, coin.season, wish="base")
    coin.season.assignment = Assignment.CHOICE
    enrol(birch, coin.season, wish="swarm")
    assert coin_share(coin.season) == (1, 2)


@pytest.mark.slow
def test_a_round_is_scored_in_the_arm_that_the_coin_said(coin: Site) -> None:
    nodes = coin.join("amber", "birch")
    said = {node.name: flip_coin(node, coin.season) for node in nodes}
    for node in nodes:
        enrol(node, coin.season, wish="isolated" if said[node.name] == "swarm" else "swarm")
    judge_round = coin.play(amber="rrrr", birch="rrrr")
    assert dict(judge_round.scores.values_list("node__name", "arm")) == said
