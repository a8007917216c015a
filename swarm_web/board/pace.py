"""The rate of rollouts: totals are stored in Redis and compared with those of a minute ago.

So the exchange of rollouts needs no extra counting. A reader stores the current totals, so the
first reading after an idle time has nothing to compare with.
"""

import logging
from dataclasses import dataclass

import msgspec
import redis.exceptions

from swarm_web.core.store import sync_redis

logger = logging.getLogger(__name__)

SPAN_S = 60.0
# Rates over shorter spans are mostly noise.
_LEAST_SPAN_S = 5.0
# The interval between stored totals, which is short enough for readers.
_NOTE_EVERY_S = 4.0
_KEPT = 40


class Totals(msgspec.Struct, frozen=True):
    """The rollouts given to and used by other nodes so far; `at` is Unix seconds."""

    at: float
    relayed: int
    used: int


@dataclass(frozen=True)
class Pace:
    """Rollouts per minute, measured over the last `seconds`."""

    relayed: float
    used: float
    seconds: float


def note_totals(season_id: int, totals: Totals) -> Pace | None:
    """Store a season's totals and return the current rate; None if it is unknown."""
    key = f"pace:{season_id}"
    try:
        client = sync_redis()
        noted = [msgspec.json.decode(raw, type=Totals) for raw in client.lrange(key, 0, -1)]
        if not noted or totals.at - noted[0].at >= _NOTE_EVERY_S:
            client.lpush(key, msgspec.json.encode(totals))
            client.ltrim(key, 0, _KEPT - 1)
            client.expire(key, int(3 * SPAN_S))
    except redis.exceptions.RedisError:
        logger.warning("could not tell the pace of rollouts", exc_info=True)
        return None
    return measure_pace(noted, totals)


def measure_pace(noted: list[Totals], now: Totals) -> Pace | None:
    """Compare totals with the oldest ones of the last minute; pure."""
    lately = [note for note in noted if _LEAST_SPAN_S <= now.at - note.at <= SPAN_S + _NOTE_EVERY_S]
    if not lately:
        return None
    then = min(lately, key=lambda note: note.at)
    seconds = now.at - then.at
    return Pace(
        relayed=max(0, now.relayed - then.relayed) * 60 / seconds,
        used=max(0, now.used - then.used) * 60 / seconds,
        seconds=seconds,
    )
