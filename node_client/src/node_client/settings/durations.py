"""Spans of time as people write them: `90m`, `2h`, `1h30m`, `1d`. Pure."""

import re
from datetime import timedelta

from node_client.errors import SettingsError

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_duration(text: str, *, option: str) -> timedelta:
    """Return a span of time of at least a second. Raises SettingsError, naming the option."""
    found = _SPAN.fullmatch(text.strip().lower())
    days, hours, minutes, seconds = (
        (int(part or 0) for part in found.groups()) if found else (0,) * 4
    )
    try:
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        span = timedelta()
    if not span:
        raise SettingsError(
            f"{option} is {text!r}, which is no span of time.", fix="Write 90m, 2h, 1h30m or 1d."
        )
    return span
