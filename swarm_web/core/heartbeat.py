"""Signs of life of the site's parts, left in Redis where every process can read them.

The worker stamps its own heartbeat. The clock is stamped at the end of each tick of the rounds, so
an old clock beside a fresh worker means that beat is down or that ticks fail.

Web processes share one sign, so it is as old as the silence of all of them. Redis alone measures
its age, because their clocks may differ from each other and from the worker's.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from swarm_web.core.store import async_redis, sync_redis

# Rounds tick every second and workers beat every two: ten missed ones are no accident.
STALE_AFTER_S = 20.0


class SitePart(StrEnum):
    """A part that shows signs of life."""

    WORKER = "worker"
    CLOCK = "clock"


def stamp(part: SitePart, *, now: datetime) -> None:
    """Note that the part is alive."""
    sync_redis().set(_key(part), now.timestamp())


def read_ages(*, now: datetime) -> dict[SitePart, float | None]:
    """Return the seconds since each part's last sign of life; None when there never was one."""
    parts = list(SitePart)
    stamps = sync_redis().mget([_key(part) for part in parts])
    return {
        part: None if found is None else max(0.0, now.timestamp() - float(found))
        for part, found in zip(parts, stamps, strict=True)
    }


def is_alive(age: float | None) -> bool:
    """Tell whether a sign of life of this age is fresh enough."""
    return age is not None and age < STALE_AFTER_S


def _key(part: SitePart) -> str:
    """Return where the part's sign is; all are read at once, so they share a hash tag."""
    return f"{{alive}}:{part}"


# ---- web processes

_SERVING = "alive:web"
# Redis tells for how long it will still keep a key, and not for how long it has kept it.
_KEPT = timedelta(days=30)


async def stamp_web() -> None:
    """Note that a web process can serve."""
    await async_redis().set(_SERVING, 1, px=_KEPT)


async def keep_silent(silence: timedelta) -> None:
    """Let no web process have served for `silence` at least, if there is no sign of any."""
    await async_redis().set(_SERVING, 1, px=_KEPT - silence, nx=True)


def web_silence() -> timedelta | None:
    """Return how long ago a web process said that it can serve; None when none ever did."""
    left_ms = sync_redis().pttl(_SERVING)
    return None if left_ms < 0 else max(timedelta(0), _KEPT - timedelta(milliseconds=left_ms))
