"""Connections to Redis (or Valkey): one pool per process, and per event loop for async code.

Blocking pools: when all connections are in use a caller waits instead of failing.
"""

import asyncio
from functools import cache
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings

_POOL_SIZE = 32
_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()


@cache
def sync_redis() -> redis.Redis:
    """Return this process's client for code outside an event loop."""
    pool = redis.BlockingConnectionPool.from_url(
        settings.REDIS_URL, max_connections=_POOL_SIZE, timeout=None
    )
    return redis.Redis(connection_pool=pool)


def async_redis() -> redis.asyncio.Redis:
    """Return the running event loop's client."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            settings.REDIS_URL, max_connections=_POOL_SIZE, timeout=None
        )
        _by_loop[loop] = redis.asyncio.Redis(connection_pool=pool)
    return _by_loop[loop]
