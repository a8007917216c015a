"""Rules: which nodes are silent or outdated, and when to retry a message or give up. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from swarm_protocol.version import parse_version

# A longer time without a pulse counts as an outage here. A shorter one does not matter, because
# `last_seen` of connected nodes is itself updated only every 15 s.
_OUTAGE = timedelta(seconds=15)
# The watch is updated every 15 s. If an update comes later than this, it is unknown whether nodes
# could connect meanwhile.
_GAP = timedelta(seconds=60)

FIRST_PAUSE = timedelta(seconds=30)
PAUSE_FACTOR = 4
# 30 s, 2 min, 8 min, 32 min, 2 h, 8.5 h: the last attempt comes eleven hours after the first.
MAX_ATTEMPTS = 7
GIVE_UP_AFTER = timedelta(days=3)
GIVE_UP_FAILURES = 10


@dataclass(frozen=True)
class Watch:
    """A period without an outage: it began at `since` and was last updated at `looked_at`."""

    since: datetime
    looked_at: datetime


def continue_watch(watch: Watch | None, *, now: datetime, web_silence: timedelta | None) -> Watch:
    """Return the watch, updated at `now`.

    The watch starts again at `now` in each of these cases:

    - `watch` is None.
    - The watch was not updated for more than a minute.
    - `web_silence`, the time since the last pulse of the web processes, is longer than 15 s.
    - `web_silence` is None, because there was no pulse.
    """
    is_broken = (
        watch is None
        or now - watch.looked_at > _GAP
        or web_silence is None
        or web_silence > _OUTAGE
    )
    since = now if is_broken or watch is None else watch.since
    return Watch(since=since, looked_at=now)


def silent_before(watch: Watch, *, now: datetime, threshold: timedelta) -> datetime | None:
    """Return the time `threshold` before `now`. A node last seen before this time is silent.

    Returns None if the watch began after this time. An outage may then have kept nodes from
    connecting, so it is unknown which nodes are silent.
    """
    if now - watch.since < threshold:
        return None
    return now - threshold


def pause_after(attempts: int) -> timedelta:
    """Return the pause before the next attempt, after `attempts` attempts failed in a row.

    `attempts` must be at least 1. From MAX_ATTEMPTS - 1 on, the pause stays the same.
    """
    factor: int = PAUSE_FACTOR ** (min(attempts, MAX_ATTEMPTS - 1) - 1)
    return FIRST_PAUSE * factor


def should_give_up(*, failures: int, failing_since: datetime, now: datetime) -> bool:
    """Return whether to switch off a channel that failed `failures` times since `failing_since`."""
    return failures >= GIVE_UP_FAILURES and now - failing_since >= GIVE_UP_AFTER


def is_outdated(version: str, *, minimum: str) -> bool:
    """Return whether a client version is older than the minimum; false for an invalid version.

    Raises ValueError for an invalid minimum.
    """
    oldest = parse_version(minimum)
    try:
        return parse_version(version) < oldest
    except ValueError:
        return False
