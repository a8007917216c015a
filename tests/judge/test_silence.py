"""Extensions of rounds while no web process is ready."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.engine import SETTLING, SILENCE, return_time, unserved_time
from swarm_protocol.returning import HURRY_S, LONGEST_PAUSE_S
from tests.judge.in_memory_judge import EPOCH

MOMENT = timedelta(microseconds=1)
WITHIN = timedelta(seconds=5)
SECOND = timedelta(seconds=1)


def sum_extensions(ticks: Sequence[datetime], *, served_until: datetime) -> timedelta:
    """Return how much time each tick adds while no web process is ready."""
    return sum(
        (
            unserved_time(before, silence=now - served_until, within=WITHIN, now=now)
            for before, now in pairwise(ticks)
        ),
        timedelta(0),
    )


@pytest.mark.parametrize("silence", [None, timedelta(0), SILENCE - MOMENT])
def test_a_serving_site_adds_no_time(silence: timedelta | None) -> None:
    assert not unserved_time(EPOCH, silence=silence, within=WITHIN, now=EPOCH + SECOND)


def test_a_season_watched_for_the_first_time_gets_no_time() -> None:
    assert not unserved_time(None, silence=timedelta(hours=1), within=WITHIN, now=EPOCH)


@settings(deadline=None)
@given(
    pauses=st.lists(st.integers(1, 14_000), min_size=4, max_size=30),
    served_for=st.integers(0, 20_000),
)
def test_an_outage_adds_its_length_and_the_return_time_for_any_ticks(
    pauses: list[int], served_for: int
) -> None:
    ticks = [EPOCH + timedelta(milliseconds=ms) for ms in accumulate(pauses, initial=0)]
    served_until = EPOCH + timedelta(milliseconds=served_for)
    away = ticks[-1] - served_until
    expected = away + WITHIN + SETTLING if away >= SILENCE else timedelta(0)
    assert sum_extensions(ticks, served_until=served_until) == expected


def test_deadlines_are_extended_during_the_outage_before_they_pass() -> None:
    ticks = [EPOCH + i * SECOND for i in range(100)]
    for i in range(4, 100):
        passed = ticks[i] - EPOCH
        assert sum_extensions(ticks[: i + 1], served_until=EPOCH) >= passed


def test_a_clock_behind_the_last_tick_adds_no_time() -> None:
    assert not unserved_time(
        EPOCH, silence=timedelta(seconds=20), within=WITHIN, now=EPOCH - 2 * SECOND
    )


def test_nodes_get_the_longest_pause_to_return_after_a_long_outage() -> None:
    hurry = timedelta(seconds=HURRY_S)
    assert return_time(hurry - MOMENT, within=WITHIN) == WITHIN + SETTLING
    assert return_time(hurry, within=WITHIN) == timedelta(seconds=LONGEST_PAUSE_S) + SETTLING
    ticks = [EPOCH, EPOCH + SECOND, EPOCH + hurry - SECOND, EPOCH + hurry]
    expected = hurry + timedelta(seconds=LONGEST_PAUSE_S) + SETTLING
    assert sum_extensions(ticks, served_until=EPOCH) == expected
