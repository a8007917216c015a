"""The rate of rollouts: the change of a season's totals over the last minute.

The worker stores a sample of the totals in Redis every few seconds (`dashboard.tasks.sample_pace`),
and pages compare two samples. So the relay counts nothing extra for the rate.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

import msgspec
import redis.exceptions
from django.db.models import Sum

from swarm_web.core.store import sync_redis
from swarm_web.relay.models import Contribution

logger = logging.getLogger(__name__)

SPAN_S = 60.0
# The least time between the two samples: rates over less are mostly noise.
_LEAST_SPAN_S = 4.0
# With an older latest sample the rate is unknown: the worker is down or late.
_STALE_S = 30.0
# Number of samples that are kept: those of more than a minute.
_KEPT = 20


class TotalsSample(msgspec.Struct, frozen=True):
    """A season's totals at the time `at`, in Unix seconds.

    `relayed` counts rollouts delivered to nodes, `used` external rollouts that nodes trained on.
    """

    at: float
    relayed: int
    used: int


@dataclass(frozen=True)
class Pace:
    """Rollouts per minute, measured over `seconds`.

    `relayed` counts rollouts delivered to nodes, `used` external rollouts that nodes trained on.
    """

    relayed: float
    used: float
    seconds: float


def sample_totals(season_id: int, *, now: datetime) -> None:
    """Store a sample of a season's totals. Raises RedisError."""
    totals = Contribution.objects.filter(season=season_id).aggregate(
        relayed=Sum("delivered", default=0), used=Sum("external_used", default=0)
    )
    sample = TotalsSample(now.timestamp(), **totals)
    key, client = _key(season_id), sync_redis()
    client.lpush(key, msgspec.json.encode(sample))
    client.ltrim(key, 0, _KEPT - 1)
    client.expire(key, int(3 * SPAN_S))


def read_pace(season_id: int, *, now: datetime) -> Pace | None:
    """Return the current rate of a season's rollouts.

    Returns None if `measure_pace` finds no rate in the stored samples, or Redis is unavailable.
    """
    try:
        stored = sync_redis().lrange(_key(season_id), 0, -1)
    except redis.exceptions.RedisError:
        logger.warning("could not read the rate of rollouts", exc_info=True)
        return None
    samples = [msgspec.json.decode(raw, type=TotalsSample) for raw in stored]
    return measure_pace(samples, now=now.timestamp())


def measure_pace(samples: list[TotalsSample], *, now: float) -> Pace | None:
    """Return the rate from the earliest to the latest sample of the last minute (SPAN_S).

    The minute ends at the latest sample. Returns None if there are no samples, if the two samples
    are less than _LEAST_SPAN_S apart, or if the latest one is older than _STALE_S. `now` is in Unix
    seconds.
    """
    if not samples:
        return None
    latest = max(samples, key=lambda sample: sample.at)
    earliest = min(
        (sample for sample in samples if latest.at - sample.at <= SPAN_S),
        key=lambda sample: sample.at,
    )
    seconds = latest.at - earliest.at
    if seconds < _LEAST_SPAN_S or now - latest.at > _STALE_S:
        return None
    # Totals decrease if an operator deletes nodes.
    return Pace(
        relayed=max(0, latest.relayed - earliest.relayed) * 60 / seconds,
        used=max(0, latest.used - earliest.used) * 60 / seconds,
        seconds=seconds,
    )


def _key(season_id: int) -> str:
    return f"pace:{season_id}"
