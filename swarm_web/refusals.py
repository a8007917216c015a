"""What each node was refused lately, by code, so that its page can name the last error and its fix.

A hash and a text in Redis for each node; both are forgotten a week after the last refusal. Noting
never disturbs what is refused: while Redis is away nothing is noted, and that is logged.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import msgspec
import redis.exceptions

from swarm_web.store import async_redis, sync_redis

logger = logging.getLogger(__name__)

_KEPT = timedelta(days=7)


class LastRefusal(msgspec.Struct, frozen=True):
    """A refusal's code and message, as the node was told them."""

    code: str
    message: str
    at: datetime


@dataclass(frozen=True)
class Refusals:
    """How often a node was refused by code, and what it was refused last."""

    counts: dict[str, int]
    last: LastRefusal | None


async def note_refusal(node_id: int, *, code: str, message: str, now: datetime) -> None:
    """Note that a node was refused something."""
    counts, last = _keys(node_id)
    refusal = LastRefusal(code, message, now)
    try:
        async with async_redis().pipeline(transaction=False) as batch:
            batch.hincrby(counts, code, 1)
            batch.expire(counts, _KEPT)
            batch.set(last, msgspec.json.encode(refusal), ex=_KEPT)
            await batch.execute()
    except redis.exceptions.RedisError:
        logger.warning("could not note what node %s was refused", node_id, exc_info=True)


def read_refusals(node_id: int) -> Refusals | None:
    """Return what a node was refused; None while Redis is away."""
    counts, last = _keys(node_id)
    try:
        # The client decodes nothing unless it is told to.
        stored = cast("dict[bytes, bytes]", sync_redis().hgetall(counts))
        told = cast("bytes | None", sync_redis().get(last))
    except redis.exceptions.RedisError:
        logger.warning("could not read what node %s was refused", node_id, exc_info=True)
        return None
    return Refusals(
        counts={code.decode(): int(times) for code, times in sorted(stored.items())},
        last=msgspec.json.decode(told, type=LastRefusal) if told else None,
    )


def _keys(node_id: int) -> tuple[str, str]:
    return f"refused:{node_id}", f"refused:{node_id}:last"
