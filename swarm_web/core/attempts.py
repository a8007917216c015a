"""Limits on attempts, such as password guesses, counted in Redis."""

import logging

import redis.exceptions

from swarm_web.core.errors import RequestError
from swarm_web.core.store import sync_redis

logger = logging.getLogger(__name__)


def count_attempt(key: str, *, limit: int, period_s: int, code: str, message: str) -> None:
    """Count an attempt under a key; the first attempt begins a period of `period_s` seconds.

    Raises RequestError, with this code and message, for each attempt beyond `limit` in the period.
    While Redis is unavailable no attempt is refused.
    """
    try:
        with sync_redis().pipeline() as pipeline:
            pipeline.set(key, 0, ex=period_s, nx=True)
            pipeline.incr(key)
            pipeline.ttl(key)
            _, attempts, wait_s = pipeline.execute()
        if wait_s < 0:
            # In a cluster these commands are no transaction. If the key expires after the first of
            # them, the second creates it again, without an expiry.
            sync_redis().expire(key, period_s)
            wait_s = period_s
    except redis.exceptions.RedisError:
        logger.warning("could not count an attempt", exc_info=True)
        return
    if attempts > limit:
        raise RequestError(
            code, message, fix=f"Try again in {wait_s} s.", status=429, retry_after_s=wait_s
        )


def uncount_attempts(*keys: str, period_s: int) -> None:
    """Subtract one attempt from each count; earlier attempts still count.

    If a count were reset instead, an attacker could get more guesses by succeeding once with
    something of their own. While Redis is unavailable, nothing happens.
    """
    try:
        with sync_redis().pipeline() as pipeline:
            for key in keys:
                # If the key has expired, `decr` alone would create it again without an expiry.
                pipeline.set(key, 1, ex=period_s, nx=True)
                pipeline.decr(key)
            pipeline.execute()
    except redis.exceptions.RedisError:
        logger.warning("could not subtract an attempt", exc_info=True)
