"""Selectors of archived rollouts, exchanges and training points."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from judge.models import Season
from swarm_web.nodes.models import Node
from swarm_web.relay.selectors.archive import (
    LEARNERS_SHOWN,
    NEWEST_FIRST,
    FoundCompletions,
    RolloutFilters,
    recent_rollouts,
    search_rollouts,
)
from swarm_web.relay.selectors.history import (
    Flow,
    Peer,
    exchanges_in,
    given_to,
    taken_from,
    training_points,
)
from tests.factories import (
    make_archived_rollout,
    make_exchange,
    make_node,
    make_season,
    make_training_point,
)

NOW = timezone.now()
HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db


def test_recent_rollouts_are_checked_and_newest_first(season: Season, amber: Node) -> None:
    old = make_archived_rollout(season, amber, published_at=NOW - HOUR)
    new = make_archived_rollout(season, amber, published_at=NOW)
    make_archived_rollout(season, amber, published_at=NOW, solved=None)
    assert recent_rollouts(season.pk, limit=5) == [new, old]
    assert recent_rollouts(season.pk, limit=1) == [new]


def test_recent_rollouts_exclude_other_seasons(season: Season, amber: Node) -> None:
    make_archived_rollout(season, amber)
    assert recent_rollouts(make_season().pk, limit=5) == []


def test_paging_returns_every_rollout_once_despite_equal_times(season: Season, amber: Node) -> None:
    rollouts = [make_archived_rollout(season, amber, published_at=NOW) for _ in range(5)]
    found, after = [], None
    for size in (2, 2, 1):
        page = NEWEST_FIRST.read(search_rollouts(RolloutFilters()), limit=2, after=after)
        assert len(page.rows) == size
        found += page.rows
        after = page.next
    assert after is None
    assert found == rollouts[::-1]


def test_search_applies_the_filters(season: Season, amber: Node, bold: Node) -> None:
    sums = make_archived_rollout(season, amber, learners=[bold])
    words = make_archived_rollout(season, bold, dataset="word_sorting", solved=0)
    for filters, expected in (
        (RolloutFilters(author="amber"), [sums]),
        (RolloutFilters(learner="bold"), [sums]),
        (RolloutFilters(learner="amber"), []),
        (RolloutFilters(dataset="word_sorting"), [words]),
        (RolloutFilters(outcome=FoundCompletions.RIGHT), [sums]),
        (RolloutFilters(outcome=FoundCompletions.WRONG), [words]),
        (RolloutFilters(author="amber", outcome=FoundCompletions.WRONG), []),
    ):
        assert list(search_rollouts(filters)) == expected


def test_page_takes_two_queries_and_limits_the_learners_per_rollout(
    season: Season, amber: Node, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    learners = [make_node()[0] for _ in range(LEARNERS_SHOWN + 2)]
    for _ in range(3):
        make_archived_rollout(season, amber, learners=learners)
    with django_assert_num_queries(2):
        for row in recent_rollouts(season.pk, limit=5):
            assert row.author.name == "amber"
            assert row.learned_by == LEARNERS_SHOWN + 2
            assert [learned.node for learned in row.learners] == learners[:LEARNERS_SHOWN]


def test_exchanges_of_an_hour_are_sorted_by_size(season: Season, amber: Node, bold: Node) -> None:
    make_exchange(season, amber, bold, used=2, hour=NOW)
    make_exchange(season, bold, amber, used=4, hour=NOW)
    make_exchange(season, bold, amber, used=9, hour=NOW - HOUR)
    flows = [Flow("bold", "amber", 4), Flow("amber", "bold", 2)]
    assert exchanges_in(season.pk, hour=NOW, limit=5) == flows
    assert exchanges_in(season.pk, hour=NOW, limit=1) == flows[:1]


def test_taken_from_and_given_to_return_the_peers_of_a_node(
    season: Season, amber: Node, bold: Node
) -> None:
    calm = make_node("calm")[0]
    make_exchange(season, amber, bold, used=2)
    make_exchange(season, calm, bold, used=3)
    taken = taken_from(bold, season_id=season.pk, since=NOW - HOUR, limit=5)
    given = given_to(amber, season_id=season.pk, since=NOW - HOUR, limit=5)
    assert taken == [Peer("calm", 3), Peer("amber", 2)]
    assert given == [Peer("bold", 2)]


def test_training_points_are_the_latest_in_ascending_order(season: Season, amber: Node) -> None:
    for step in range(1, 5):
        make_training_point(amber, season, step=step, at=NOW + step * HOUR)
    points = training_points(amber, season_id=season.pk, limit=3)
    assert [point.step for point in points] == [2, 3, 4]
