"""Signs of life of the background parts, left in Redis where every web process can read them.

The worker stamps its own heartbeat. The clock is stamped at the end of each tick of the rounds, so
an old clock beside a fresh worker means that beat is down or that ticks fail.
"""

from datetime import datetime
from enum import StrEnum

from swarm_web.store import sync_redis

# Rounds tick every second and workers beat every two: ten missed ones are no accident.
STALE_AFTER_S = 20.0


class Part(StrEnum):
    """A part that shows signs of life."""

    WORKER = "worker"
    CLOCK = "clock"


def stamp(part: Part, *, now: datetime) -> None:
    """Note that the part is alive."""
    sync_redis().set(f"alive:{part}", now.timestamp())


def read_ages(*, now: datetime) -> dict[Part, float | None]:
    """Return the seconds since each part's last sign of life; None when there never was one."""
    parts = list(Part)
    stamps = sync_redis().mget([f"alive:{part}" for part in parts])
    return {
        part: None if found is None else max(0.0, now.timestamp() - float(found))
        for part, found in zip(parts, stamps, strict=True)
    }


def is_alive(age: float | None) -> bool:
    """Tell whether a sign of life of this age is fresh enough."""
    return age is not None and age < STALE_AFTER_S
