"""Test the pace of rollouts, measured from samples of the season's totals."""

from datetime import UTC, datetime, timedelta

import pytest

from swarm_web.board.pace import TotalsSample, measure_pace, read_pace, sample_totals
from swarm_web.core.store import sync_redis
from swarm_web.dashboard.tasks import sample_pace
from swarm_web.relay.models import Contribution
from tests.factories import make_node, make_season

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_pace_is_rollouts_per_minute_between_two_samples() -> None:
    pace = measure_pace([TotalsSample(0, 100, 40), TotalsSample(30, 160, 50)], now=31)
    assert pace is not None
    assert (pace.relayed, pace.used, pace.seconds) == (120, 20, 30)


def test_pace_covers_at_most_a_minute() -> None:
    samples = [TotalsSample(at, at, 0) for at in (100, 50, 0)]
    pace = measure_pace(samples, now=100)
    assert pace is not None
    assert pace.seconds == 50


@pytest.mark.parametrize("times", [(), (0,), (0, 2)])
def test_pace_is_unknown_without_samples_some_seconds_apart(times: tuple[int, ...]) -> None:
    assert measure_pace([TotalsSample(at, 9, 9) for at in times], now=3) is None


def test_pace_is_unknown_when_the_latest_sample_is_old() -> None:
    samples = [TotalsSample(0, 0, 0), TotalsSample(30, 9, 9)]
    assert measure_pace(samples, now=60) is not None
    assert measure_pace(samples, now=61) is None


def test_pace_is_never_negative() -> None:
    pace = measure_pace([TotalsSample(0, 100, 100), TotalsSample(30, 0, 0)], now=30)
    assert pace is not None
    assert (pace.relayed, pace.used) == (0, 0)


def test_pace_is_measured_from_the_contributions_of_all_nodes(db: None) -> None:
    season = make_season()
    sync_redis().delete(f"pace:{season.pk}")
    for name in ("amber", "bold"):
        node, _ = make_node(name)
        Contribution.objects.create(season=season, node=node, delivered=10, external_used=4)
    sample_totals(season.pk, now=NOW)
    assert read_pace(season.pk, now=NOW) is None
    Contribution.objects.update(delivered=25, external_used=6)
    later = NOW + timedelta(seconds=60)
    sample_totals(season.pk, now=later)
    pace = read_pace(season.pk, now=later)
    assert pace is not None
    assert (pace.relayed, pace.used) == (30, 4)


def test_task_samples_the_shown_season(db: None) -> None:
    season = make_season()
    sync_redis().delete(f"pace:{season.pk}")
    sample_pace()
    assert sync_redis().llen(f"pace:{season.pk}") == 1


def test_task_does_nothing_without_a_season(db: None) -> None:
    sample_pace()


def test_pace_is_unknown_without_redis(redis_away: None) -> None:
    assert read_pace(1, now=NOW) is None
