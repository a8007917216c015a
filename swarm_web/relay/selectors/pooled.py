"""The size of the pool, and how often a node's rollouts were delivered."""

import logging
from typing import cast

import redis.exceptions

from swarm_web.core.store import sync_redis
from swarm_web.relay.keys import season_key

logger = logging.getLogger(__name__)


def pool_size(season_id: int) -> int:
    """Return how many rollouts a season's pool holds, as a web process last wrote it.

    0 if no process has written it in the last minute. Raises redis.exceptions.RedisError.
    """
    held = cast("bytes | None", sync_redis().get(season_key(season_id, "held")))
    return int(held or 0)


def delivered_to_others(node_id: int, *, season_id: int) -> int | None:
    """Return how many times rollouts of a node were delivered to other nodes in a season.

    None while Redis is down, so that a page can still show its other figures.
    """
    key = season_key(season_id, "given")
    try:
        given = cast("bytes | None", sync_redis().hget(key, str(node_id)))
    except redis.exceptions.RedisError:
        logger.warning("could not read what a node gave", exc_info=True)
        return None
    return int(given or 0)
