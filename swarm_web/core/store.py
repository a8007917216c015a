"""Connections to Redis (or Valkey): a pool per process, and a pool per event loop for async code.

If all connections of a pool are in use, a caller waits. With REDIS_CLUSTER the store is a cluster
(swarm_web.core.store_cluster); its async client does not wait but raises an error. Celery's queue
is never in a cluster.
"""

from functools import cache

import redis
import redis.asyncio
from django.conf import settings

from swarm_web.core.event_loops import one_per_loop
from swarm_web.core.store_cluster import connect_cluster, connect_cluster_async

_POOL_SIZE = 32


@cache
def sync_redis() -> redis.Redis:
    """Return this process's Redis client for code outside of event loops.

    Raises redis.exceptions.RedisError if the store is a cluster that cannot be reached.
    """
    if settings.REDIS_CLUSTER:
        return connect_cluster(settings.REDIS_URL, connections=_POOL_SIZE)
    return _connect(settings.REDIS_URL)


@cache
def broker_redis() -> redis.Redis:
    """Return this process's client of the server that holds Celery's queue."""
    return _connect(settings.CELERY_BROKER_URL)


@one_per_loop
def async_redis() -> redis.asyncio.Redis:
    """Return the Redis client of the running event loop; each loop has one."""
    if settings.REDIS_CLUSTER:
        return connect_cluster_async(settings.REDIS_URL)
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        settings.REDIS_URL, max_connections=_POOL_SIZE, timeout=None
    )
    return redis.asyncio.Redis(connection_pool=pool)


def _connect(url: str) -> redis.Redis:
    pool = redis.BlockingConnectionPool.from_url(url, max_connections=_POOL_SIZE, timeout=None)
    return redis.Redis(connection_pool=pool)
