"""Staggered return of nodes: evenly spread, in time for a round, and one at a time."""

from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from swarm_protocol.returning import MAX_PAUSE_S, MAX_WAIT_S
from swarm_web.gateway.staggering import Slots, draw_delays, jitter, reconnect_spread, time_to_round

NOW = timezone.now()


def window(nodes: int, *, opens_in_s: float | None) -> float:
    return reconnect_spread(nodes, per_second=100, within_s=5, opens_in_s=opens_in_s)


def test_return_window_grows_with_the_number_of_nodes_without_a_round() -> None:
    assert [window(nodes, opens_in_s=None) for nodes in (0, 50, 3000)] == [0, 0.5, 30]


def test_return_window_is_at_most_the_longest_wait() -> None:
    assert window(1_000_000, opens_in_s=None) == MAX_WAIT_S


@pytest.mark.parametrize(("opens_in_s", "expected"), [(0, 5), (60, 5), (80, 20), (1000, 30)])
def test_return_window_ends_before_the_next_round(opens_in_s: float, expected: float) -> None:
    assert window(3000, opens_in_s=opens_in_s) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(-10, 0), (90, 90), (None, None)])
def test_time_to_round_is_the_time_until_it_opens(
    seconds: float | None, expected: float | None
) -> None:
    opens_at = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert time_to_round(opens_at, now=NOW) == expected


def test_delays_are_evenly_spread_and_in_random_order() -> None:
    delays = draw_delays(1000, spread_s=10, random=Random(0))
    assert [int(delay * 100) for delay in sorted(delays)] == list(range(1000))
    assert delays != sorted(delays)


def test_jitter_at_most_doubles_the_wait() -> None:
    random = Random(0)
    waits = [jitter(2, random) for _ in range(1000)]
    assert 2 <= min(waits) < 2.1
    assert 3.9 < max(waits) <= 4


def test_slots_are_given_out_one_after_another() -> None:
    slots, random = Slots(10), Random(0)
    waits = [slots.take(now=100, random=random) for _ in range(20)]
    assert waits == sorted(waits)
    assert 0.5 <= waits[0] <= 0.6
    assert 2.4 <= waits[-1] <= 2.5


def test_slots_are_random_beyond_the_longest_pause() -> None:
    slots, random = Slots(10), Random(0)
    waits = [slots.take(now=100, random=random) for _ in range(2000)]
    assert max(waits) <= MAX_PAUSE_S
    assert len({round(wait, 3) for wait in waits[-500:]}) > 400
