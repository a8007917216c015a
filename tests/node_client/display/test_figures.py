import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from node_client.display.figures import (
    BARS,
    count_down,
    describe_bytes,
    describe_duration,
    describe_rank,
    describe_trend,
    sparkline,
)
from node_client.display.lines import describe_step
from tests.node_client.panel_views import full_view

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_sparkline_rises_with_the_reward() -> None:
    assert sparkline([0.0, 0.5, 1.0]) == BARS[0] + BARS[4] + BARS[7]
    assert len(sparkline([0.5] * 1000)) == 32
    assert sparkline([]) == ""


def test_reward_outside_the_range_has_the_lowest_or_highest_bar() -> None:
    rewards = [-1.0, -0.2, math.nan, -math.inf, 2.0, math.inf]
    assert sparkline(rewards) == BARS[0] * 4 + BARS[7] * 2


@pytest.mark.parametrize(
    ("slope", "trend"), [(0.002, "rising"), (-0.002, "falling"), (0.0, "steady")]
)
def test_trend_is_recognised_despite_noise(slope: float, trend: str) -> None:
    noise = random.Random(7)
    assert describe_trend([0.5 + slope * n + noise.gauss(0, 0.05) for n in range(200)]) == trend


def test_equal_values_are_steady_and_few_values_have_no_trend() -> None:
    assert describe_trend([0.5] * 20) == "steady"
    assert describe_trend([0.1, 0.9] * 9) == ""


def test_indistinguishable_ranks_are_shown_as_a_range() -> None:
    assert describe_rank((3, 5), ranked=1200) == "3–5 of 1,200"
    assert describe_rank((1, 1), ranked=None) == "1"


@pytest.mark.parametrize(
    ("seconds", "words"), [(-3, "0:00"), (59.6, "1:00"), (605, "10:05"), (7384, "2 h 03 min")]
)
def test_time_span_is_formatted_briefly(seconds: float, words: str) -> None:
    assert describe_duration(seconds) == words
    assert count_down((NOON + timedelta(seconds=seconds)).isoformat(), now=NOON) == words


def test_sizes_have_binary_units() -> None:
    assert describe_bytes(300 * 2**20) == "300 MiB"
    assert describe_bytes(5 * 2**29) == "2.5 GiB"


def test_step_without_a_panel_is_described_in_one_line() -> None:
    assert describe_step(full_view()) == (
        "step 1234 · training reward 0.793 · informative 50% · 4 local + 4 external · 0.8 s"
    )
