"""Reads of the relay for pages and handlers."""

from swarm_web.relay.pool import pool_key
from swarm_web.store import sync_redis


def pool_size(season_id: int) -> int:
    """Return how many rollouts a season's pool holds. Raises redis.exceptions.RedisError."""
    return int(sync_redis().zcard(pool_key(season_id)))
