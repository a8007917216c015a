"""Parses training hours, such as `22-7` or `22:30-7,12-13`, and durations, such as `1h30m`.

Hours are wall-clock times, also on days when the clocks change.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from node_client.errors import SettingsError

MINUTE = timedelta(minutes=1)
DAY = 24 * 60  # minutes
# Minutes to search for the next start: in two days, of at most 25 hours each, there is one.
FARTHEST = 2 * 25 * 60


@dataclass(frozen=True)
class DailyPeriod:
    """A daily period, from minute `start` of the day up to, but not including, minute `end`.

    It wraps around midnight if `end` is not later than `start`.
    """

    start: int
    end: int

    def contains(self, minute: int) -> bool:
        """Return whether a minute of the day is in the period."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_hours(text: str) -> tuple[DailyPeriod, ...]:
    """Return the periods in the setting `hours`, which must match the pattern of `ranges.Hours`.

    Raises SettingsError for an empty period, such as `7-7`.
    """
    periods = []
    for part in text.split(","):
        start, end = (_minute_of(word.strip()) for word in part.split("-"))
        if start == end or (start, end) == (DAY, 0):
            raise SettingsError(
                f"hours: {part.strip()} is empty.",
                fix="Leave out hours to train at any time, or give a span such as 22-7.",
            )
        periods.append(DailyPeriod(start, end))
    return tuple(periods)


def is_within(
    periods: Sequence[DailyPeriod], moment: datetime, *, zone: tzinfo | None = None
) -> bool:
    """Return whether a moment is in one of the periods, by the wall clock of a time zone.

    `moment` must have a time zone. A `zone` of None means the machine's time zone.
    """
    local = moment.astimezone(zone)
    return any(period.contains(60 * local.hour + local.minute) for period in periods)


def next_start(
    periods: Sequence[DailyPeriod], moment: datetime, *, zone: tzinfo | None = None
) -> datetime:
    """Return the start, in UTC, of the first minute that is in one of the periods.

    The search begins with the minute of `moment`, which must have a time zone. Periods are read by
    the wall clock of `zone`; None means the machine's time zone. Every minute is tried, because a
    clock change may skip the start of a period.
    """
    first = moment.astimezone(UTC).replace(second=0, microsecond=0)
    minutes = (first + step * MINUTE for step in range(FARTHEST))
    return next(minute for minute in minutes if is_within(periods, minute, zone=zone))


def _minute_of(word: str) -> int:
    hour, _, minute = word.partition(":")
    return 60 * int(hour) + int(minute or 0)


_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_duration(text: str, *, option: str) -> timedelta:
    """Return the duration that a text such as `1h30m` or `1d` gives.

    Raises SettingsError, which names `option`, if the text is not a duration, or if the
    duration is 0 or too long for a timedelta.
    """
    found = _SPAN.fullmatch(text.strip().lower())
    try:
        days, hours, minutes, seconds = (
            (int(part or 0) for part in found.groups()) if found else (0,) * 4
        )
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except (OverflowError, ValueError):  # `int` reads at most 4,300 digits
        span = timedelta()
    if not span:
        raise SettingsError(
            f"{option} is {text!r}, which is not a duration.", fix="Write 90m, 2h, 1h30m or 1d."
        )
    return span
