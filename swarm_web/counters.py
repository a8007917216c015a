"""Counters of what went wrong or was dropped, for `/metrics` and the status page.

One Redis hash holds them all, so that every process adds to the same numbers. Counting never
disturbs what is counted: while Redis is away the numbers are too low, and that is logged.
"""

import logging
from collections import defaultdict
from typing import cast

import redis.exceptions

from swarm_web.store import async_redis, sync_redis

logger = logging.getLogger(__name__)

# Requests and items of batches that were refused, by error code.
REFUSED = "refused"
# Handshakes of nodes by what became of them: `accepted`, `denied`.
CONNECTIONS = "connections"
# Doorbells that a socket was too slow for: `dropped`.
DOORBELLS = "doorbells"

_KEY = "counters"
_SEPARATOR = "/"


async def count(name: str, code: str, *, by: int = 1) -> None:
    """Add to one counter."""
    try:
        await async_redis().hincrby(_KEY, f"{name}{_SEPARATOR}{code}", by)
    except redis.exceptions.RedisError:
        logger.warning("could not count %s %s", name, code, exc_info=True)


def read_all() -> dict[str, dict[str, int]]:
    """Return all counters as `{name: {code: count}}`. Raises redis.exceptions.RedisError."""
    counters: defaultdict[str, dict[str, int]] = defaultdict(dict)
    # The client decodes nothing unless it is told to.
    stored = cast("dict[bytes, bytes]", sync_redis().hgetall(_KEY))
    for field, total in sorted(stored.items()):
        name, code = field.decode().split(_SEPARATOR, 1)
        counters[name][code] = int(total)
    return dict(counters)
