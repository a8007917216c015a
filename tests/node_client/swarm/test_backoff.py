import pytest

from node_client.swarm.backoff import jittered_backoff
from swarm_protocol.returning import MAX_PAUSE_S


def test_the_ceiling_doubles_until_the_cap() -> None:
    ceilings = [jittered_backoff(attempt, uniform=lambda: 1.0) for attempt in range(9)]
    assert ceilings == [1, 2, 4, 8, 16, 32, MAX_PAUSE_S, MAX_PAUSE_S, MAX_PAUSE_S]


def test_the_cap_may_be_lower_and_the_jitter_stays() -> None:
    ceilings = [jittered_backoff(attempt, 5, uniform=lambda: 1.0) for attempt in range(5)]
    assert ceilings == [1, 2, 4, 5, 5]
    assert jittered_backoff(9, 5, uniform=lambda: 0.5) == 2.5


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.9])
def test_the_pause_is_spread_over_the_whole_range(chance: float) -> None:
    assert jittered_backoff(3, uniform=lambda: chance) == 8 * chance


def test_a_coordinator_that_is_gone_for_weeks_overflows_nothing() -> None:
    assert jittered_backoff(1_000_000, uniform=lambda: 1.0) == MAX_PAUSE_S
