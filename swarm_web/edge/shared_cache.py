"""Django's default cache, stored in Redis for all processes; it appears empty without Redis.

allauth counts requests in this cache for its rate limits. While Redis is unavailable these limits
refuse no request, and neither do those of `edge.login_limit`.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient

from swarm_web.core.store import sync_redis

logger = logging.getLogger(__name__)

T = TypeVar("T")


class _Client(RedisCacheClient):
    """A client that uses the process's shared Redis connections."""

    def get_client(self, key: Any = None, *, write: bool = False) -> redis.Redis:
        return sync_redis()


class SharedCache(RedisCache):
    """A cache whose values all processes share.

    While Redis is unavailable, the methods defined here behave as if the cache were empty; other
    methods of RedisCache raise RedisError.
    """

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(location, params)
        self._class = _Client

    def add(self, *args: Any, **kwargs: Any) -> bool:
        """Store a value unless its key already has one, and return whether it was stored.

        While Redis is unavailable, nothing is stored, but True is returned.
        """
        return _unless_unavailable(
            lambda: super(SharedCache, self).add(*args, **kwargs), default=True
        )

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """Return a key's value; the default if it has none or Redis is unavailable."""
        return _unless_unavailable(
            lambda: super(SharedCache, self).get(key, default, version), default=default
        )

    def set(self, *args: Any, **kwargs: Any) -> None:
        """Store a value; only log a warning while Redis is unavailable."""
        _unless_unavailable(lambda: super(SharedCache, self).set(*args, **kwargs), default=None)

    def delete(self, *args: Any, **kwargs: Any) -> bool:
        """Delete a value and return whether it existed; return False while Redis is unavailable."""
        return _unless_unavailable(
            lambda: super(SharedCache, self).delete(*args, **kwargs), default=False
        )

    # One key at a time: in a cluster several keys may be on several servers.
    get_many = BaseCache.get_many
    set_many = BaseCache.set_many
    delete_many = BaseCache.delete_many


def _unless_unavailable(operation: Callable[[], T], *, default: T) -> T:
    try:
        return operation()
    except redis.exceptions.RedisError:
        logger.warning("could not reach the shared cache", exc_info=True)
        return default
