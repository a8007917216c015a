import pytest

from node_client.swarm.backoff import jittered_backoff
from swarm_protocol.returning import MAX_PAUSE_S


def test_upper_bound_doubles_up_to_the_limit() -> None:
    ceilings = [jittered_backoff(attempt, uniform=lambda: 1.0) for attempt in range(9)]
    assert ceilings == [1, 2, 4, 8, 16, 32, MAX_PAUSE_S, MAX_PAUSE_S, MAX_PAUSE_S]


def test_upper_bound_can_be_lowered_and_is_still_jittered() -> None:
    ceilings = [jittered_backoff(attempt, 5, uniform=lambda: 1.0) for attempt in range(5)]
    assert ceilings == [1, 2, 4, 5, 5]
    assert jittered_backoff(9, 5, uniform=lambda: 0.5) == 2.5


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.9])
def test_pause_is_spread_over_the_whole_range(chance: float) -> None:
    assert jittered_backoff(3, uniform=lambda: chance) == 8 * chance


def test_very_many_attempts_do_not_overflow() -> None:
    assert jittered_backoff(1_000_000, uniform=lambda: 1.0) == MAX_PAUSE_S
