"""Checks that Redis (or Valkey) is new enough before a process starts to work."""

import logging

import redis.asyncio
import redis.exceptions

logger = logging.getLogger(__name__)

# The commands are tried, because forks and services have their own version numbers.
_PROBE = "store:probe"
# How servers refuse an unknown command or option; other errors are inconclusive.
_UNKNOWN = ("syntax error", "unknown command", "wrong number of arguments")


class StoreTooOldError(Exception):
    """The store lacks commands that the site needs; the text states what to do."""


async def check_store(client: redis.asyncio.Redis) -> None:
    """Raise StoreTooOldError if the Redis server lacks commands that the site needs.

    If this cannot be determined, log a warning instead.
    """
    try:
        await client.xtrim(_PROBE, minid="0-1")
        await client.lpop(_PROBE, 1)
    except redis.exceptions.RedisError as problem:
        is_response = isinstance(problem, redis.exceptions.ResponseError)
        if is_response and any(text in str(problem).lower() for text in _UNKNOWN):
            raise StoreTooOldError(
                f"store.too_old: the server at REDIS_URL cannot do what the site needs ({problem})."
                " Use Valkey, or Redis 6.2 or newer."
            ) from None
        logger.warning("cannot determine whether Redis is new enough", exc_info=True)
