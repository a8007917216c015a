"""When owners are notified, how often a message is tried, when a channel is given up. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from swarm_protocol.version import parse_version

# A web process signals every second that it can serve; nodes are updated every 15 s.
_OUTAGE = timedelta(seconds=15)
# The watch is updated every 15 s. After a longer gap it is unknown whether nodes could connect.
_GAP = timedelta(seconds=60)

FIRST_PAUSE = timedelta(seconds=30)
PAUSE_FACTOR = 4
# 30 s, 2 min, 8 min, 32 min, 2 h, 8.5 h: the last attempt comes eleven hours after the first.
MAX_ATTEMPTS = 7
GIVE_UP_AFTER = timedelta(days=3)
GIVE_UP_FAILURES = 10


@dataclass(frozen=True)
class Watch:
    """An uninterrupted watch over the nodes: its start, and the latest update."""

    since: datetime
    looked_at: datetime


def continue_watch(watch: Watch | None, *, now: datetime, web_silence: timedelta | None) -> Watch:
    """Return the watch after an update at `now`; it starts again if nodes could not connect.

    `web_silence` is the time since a web process could serve, None if unknown.
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
    """Return the moment before which a node was last seen if it is silent; None if none can be.

    A node has to be absent for `threshold` within the watch: downtime of the site does not count.
    """
    if now - watch.since < threshold:
        return None
    return now - threshold


def pause_after(attempts: int) -> timedelta:
    """Return the pause after a number of failed attempts, at least one."""
    factor: int = PAUSE_FACTOR ** (min(attempts, MAX_ATTEMPTS - 1) - 1)
    return FIRST_PAUSE * factor


def should_give_up(*, failures: int, failing_since: datetime, now: datetime) -> bool:
    """Return whether a channel is switched off after these failures."""
    return failures >= GIVE_UP_FAILURES and now - failing_since >= GIVE_UP_AFTER


def outdated(versions: Iterable[str], *, minimum: str) -> set[str]:
    """Return the client versions that are older than the minimum; invalid ones are left out."""
    minimum_version = parse_version(minimum)
    return {version for version in versions if _is_older(version, minimum_version)}


def _is_older(version: str, minimum_version: tuple[int, int, int]) -> bool:
    try:
        return parse_version(version) < minimum_version
    except ValueError:
        return False
