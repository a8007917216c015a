"""Heartbeats of the site's parts, stored in Redis where every process can read them.

The worker writes the heartbeat `worker`. The heartbeat `clock` is written at the end of each tick,
the task that Celery beat sends every second. If `clock` is old while `worker` is fresh, beat is
down or ticks fail.

All web processes together write one heartbeat, the pulse, so its age is the time in which none of
them could serve. Redis measures this age, because the clocks of the machines may differ.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from swarm_web.core.store import async_redis, sync_redis

# Rounds tick every second and workers beat every two, so this is at least ten missed beats.
STALE_AFTER_S = 20.0


class SitePart(StrEnum):
    """A part of the site whose heartbeat `stamp` writes; web processes use `stamp_web` instead."""

    WORKER = "worker"
    CLOCK = "clock"


def stamp(part: SitePart, *, now: datetime) -> None:
    """Write the heartbeat of a part."""
    sync_redis().set(_key(part), now.timestamp())


def read_ages(*, now: datetime) -> dict[SitePart, float | None]:
    """Return the seconds since each part's last heartbeat; None if there was none."""
    parts = list(SitePart)
    stamps = sync_redis().mget([_key(part) for part in parts])
    return {
        part: None if found is None else max(0.0, now.timestamp() - float(found))
        for part, found in zip(parts, stamps, strict=True)
    }


def is_alive(age: float | None) -> bool:
    """Return whether a heartbeat of this age, in seconds, is fresh; False for None."""
    return age is not None and age < STALE_AFTER_S


def _key(part: SitePart) -> str:
    """Return the key of a part's heartbeat.

    The keys share a hash tag, because a cluster reads only keys of one slot at once.
    """
    return f"{{alive}}:{part}"


# ---- web processes

_WEB_KEY = "alive:web"
# Redis returns the remaining lifetime of a key, not its age.
_EXPIRY = timedelta(days=30)


async def stamp_web() -> None:
    """Write the pulse, which shows that at least one web process can serve requests."""
    await async_redis().set(_WEB_KEY, 1, px=_EXPIRY)


async def init_web_stamp(age: timedelta) -> None:
    """If there is no pulse (`stamp_web`), write one that is `age` old."""
    await async_redis().set(_WEB_KEY, 1, px=_EXPIRY - age, nx=True)


def web_silence() -> timedelta | None:
    """Return the time since the last pulse of the web processes.

    None if there was no pulse in the last 30 days.
    """
    left_ms = sync_redis().pttl(_WEB_KEY)
    return None if left_ms < 0 else max(timedelta(0), _EXPIRY - timedelta(milliseconds=left_ms))
