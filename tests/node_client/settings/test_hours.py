"""The hours of the day in which a node may train, on the wall clock of its machine."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from node_client.errors import SettingsError
from node_client.settings.fields import all_settings
from node_client.settings.hours import is_within, next_start, parse_hours
from node_client.settings.sources import convert_text

BERLIN = ZoneInfo("Europe/Berlin")
KATHMANDU = ZoneInfo("Asia/Kathmandu")  # 5 h 45 min ahead


def open_at(hours: str, *moment: int, zone: ZoneInfo = BERLIN) -> bool:
    return is_within(parse_hours(hours), datetime(*moment, tzinfo=zone), zone=zone)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("hour", "expected"), [(21, False), (22, True), (23, True), (0, True), (6, True), (7, False)]
)
def test_window_may_cross_midnight(hour: int, expected: bool) -> None:
    assert open_at("22-7", 2026, 6, 1, hour) == expected


def test_one_open_window_of_several_is_enough() -> None:
    assert [open_at("22:30-7, 12-13", 2026, 6, 1, 12, minute) for minute in (0, 59)] == [True, True]
    assert not open_at("22:30-7, 12-13", 2026, 6, 1, 22, 29)


def test_window_may_cover_the_whole_day() -> None:
    assert all(open_at("0-24", 2026, 6, 1, hour) for hour in range(24))


def test_hours_are_read_in_the_given_time_zone() -> None:
    moment = datetime(2026, 6, 1, 16, 15, tzinfo=UTC)
    windows = parse_hours("22-7")
    assert is_within(windows, moment, zone=KATHMANDU)
    assert not is_within(windows, moment, zone=BERLIN)


def test_next_opening_is_later_today_or_tomorrow() -> None:
    windows = parse_hours("12-13,22-23")
    noon = datetime(2026, 6, 1, 12, tzinfo=BERLIN)
    assert next_start(windows, noon.replace(hour=9), zone=BERLIN) == noon
    assert next_start(windows, noon.replace(hour=23), zone=BERLIN) == noon.replace(day=2)


def test_opening_skipped_by_a_clock_change_moves_to_the_change() -> None:
    # On 29 March 2026 two o'clock is followed by three o'clock in Berlin.
    late = datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN)
    opening = next_start(parse_hours("2:15-7"), late, zone=BERLIN)
    assert opening == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_hour_repeated_by_a_clock_change_is_open_twice() -> None:
    # On 25 October 2026 three o'clock is followed by two o'clock.
    both = [datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)]
    assert [is_within(parse_hours("2-3"), moment, zone=BERLIN) for moment in both] == [True, True]


@pytest.mark.parametrize("text", ["7-7", "24-24", "24-0"])
def test_window_of_zero_length_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is empty"):
        parse_hours(text)


@pytest.mark.parametrize("text", ["22", "22-7,", "25-7", "22-24:30", "22 to 7", "7.5-8"])
def test_invalid_window_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError, match="spans of hours such as"):
        convert_text(all_settings()["hours"], text, place="--hours")
