"""Test the formatting of figures on pages."""

from datetime import UTC, datetime

import pytest

from swarm_web.dashboard.templatetags.figures import (
    grouped,
    interval,
    moment,
    p_value,
    percent,
    points,
    points_interval,
    ranks,
    seconds,
    share,
    size,
)


@pytest.mark.parametrize(
    ("value", "text"), [(0.3471, ".347"), (1.0, "1.000"), (0.0, ".000"), (None, "–"), ("", "–")]
)
def test_share_has_three_decimals_without_leading_zero(
    value: float | str | None, text: str
) -> None:
    assert share(value) == text


@pytest.mark.parametrize(
    ("count", "text"), [(7, "7"), (1408.4, "1\u202f408"), (12480, "12\u202f480")]
)
def test_count_has_thin_spaces_between_thousands(count: float, text: str) -> None:
    assert grouped(count) == text


def test_interval_has_two_shares_or_a_dash() -> None:
    assert interval((0.311, 0.3844)) == ".311–.384"
    assert interval((None, None)) == "–"


def test_rank_range_is_shortened_if_both_ranks_are_equal() -> None:
    assert (ranks((3, 5)), ranks((1, 1)), ranks(None)) == ("3–5", "1", "–")


def test_differences_are_signed_points() -> None:
    assert [points(d) for d in (0.1234, -0.004, 0.0001, 0, None)] == [
        "+12.3",
        "\N{MINUS SIGN}0.4",
        "0.0",
        "0.0",
        "–",
    ]
    assert points_interval((-0.01, 0.042)) == "\N{MINUS SIGN}1.0 to +4.2"
    assert points_interval(None) == "–"


def test_p_value_has_three_decimals_or_a_lower_bound() -> None:
    assert [p_value(p) for p in (0.0121, 0.0004, 1.0, None)] == [".012", "< .001", "1.000", "–"]


def test_seconds_have_one_decimal_below_a_hundred() -> None:
    assert [seconds(ms) for ms in (840, 59_940, 125_300, None)] == [
        "0.8\u202fs",
        "59.9\u202fs",
        "125\u202fs",
        "–",
    ]


def test_size_is_abbreviated_with_k_and_m() -> None:
    assert [size(n) for n in (0, 950, 302_144, 494_032_768)] == [
        "–",
        "950",
        "302\u202fk",
        "494\u202fM",
    ]


def test_size_that_rounds_up_to_the_next_unit_is_written_in_that_unit() -> None:
    assert [size(n) for n in (999_499, 999_600, 999_999_999)] == [
        "999\u202fk",
        "1\u202fM",
        "1\u202fB",
    ]


def test_percent_is_a_whole_number_or_a_dash() -> None:
    assert (percent(0.55), percent(None)) == ("55\u202f%", "–")


def test_moment_is_formatted_in_utc() -> None:
    html = str(moment(datetime(2026, 11, 21, 9, 5, 1, tzinfo=UTC)))
    assert 'datetime="2026-11-21T09:05:01+00:00"' in html
    assert 'title="2026-11-21 09:05:01 UTC"' in html
