"""The hours of the day in which a node may train: `22-7`, `22:30-7,12-13`. Pure.

They are read off the wall clock, so that they stay what they say when clocks are put forward or
back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from node_client.errors import SettingsError

MINUTE = timedelta(minutes=1)
DAY = 24 * 60  # minutes
# The longest day has 25 hours; whoever may train at all may train within two of them.
FARTHEST = 2 * 25 * 60


@dataclass(frozen=True)
class Window:
    """From minute `start` of the day to before minute `end`; over midnight if that is earlier."""

    start: int
    end: int

    def holds(self, minute: int) -> bool:
        """Tell whether a minute of the day is in it."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_hours(text: str) -> tuple[Window, ...]:
    """Return the windows of a setting. Raises SettingsError for one without a length."""
    windows = []
    for part in text.split(","):
        start, end = (_minute_of(word.strip()) for word in part.split("-"))
        if start == end or (start, end) == (DAY, 0):
            raise SettingsError(
                f"hours: {part.strip()} begins when it ends.",
                fix="Leave out hours to train at any time, or give a span such as 22-7.",
            )
        windows.append(Window(start, end))
    return tuple(windows)


def is_open(windows: Sequence[Window], moment: datetime, *, zone: tzinfo | None = None) -> bool:
    """Tell whether a moment is in one of the windows on the wall clock of a zone.

    `moment` is aware; `zone` is None for the machine's own.
    """
    local = moment.astimezone(zone)
    return any(window.holds(60 * local.hour + local.minute) for window in windows)


def next_opening(
    windows: Sequence[Window], moment: datetime, *, zone: tzinfo | None = None
) -> datetime:
    """Return the first whole minute from a moment on that is in a window.

    Minute by minute, because a clock that is put forward may jump over the start of a window.
    """
    first = moment.astimezone(UTC).replace(second=0, microsecond=0)
    minutes = (first + step * MINUTE for step in range(FARTHEST))
    return next(minute for minute in minutes if is_open(windows, minute, zone=zone))


def _minute_of(word: str) -> int:
    hour, _, minute = word.partition(":")
    return 60 * int(hour) + int(minute or 0)
