"""A cluster of Valkey (or Redis) as the store, with the same commands as a single server.

A cluster accepts a command, script or transaction only if all its keys are in one slot. Keys that
are used together share a hash tag, the part in braces: `{alive}:worker` and `{alive}:clock` are in
the slot of `alive`. Pipelines without a transaction may use keys of many slots: the client sends
each server its part (docs/decisions/0042-cluster-and-pooler.md).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.cluster
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ClusterError, RedisClusterException

# The async client has a pool for each server, which raises an error if no connection is free. The
# limit is above what a process uses at once, and low enough that eight processes stay below a
# server's limit of 10,000.
_MAX_CONNECTIONS = 1024
# By default a command to a server that is down is retried for three seconds, which delays callers.
# For a single server it fails immediately.
_RETRIES = 1
_PAUSE_S = 0.05


def connect_cluster(url: str, *, connections: int) -> redis.Redis:
    """Return a client of the cluster that the server at `url` belongs to.

    It connects immediately. Raises redis.exceptions.ClusterError if no server can be reached.
    """
    client = _Cluster.from_url(
        url,
        max_connections=connections,
        connection_pool_class=redis.BlockingConnectionPool,
        timeout=None,
    )
    # Another class with the same commands.
    return cast("redis.Redis", client)


def connect_cluster_async(url: str) -> redis.asyncio.Redis:
    """Return a client of the cluster for the running event loop; the first command connects."""
    client = _AsyncCluster.from_url(
        url,
        max_connections=_MAX_CONNECTIONS,
        retry=Retry(ConstantBackoff(_PAUSE_S), _RETRIES),
    )
    return cast("redis.asyncio.Redis", client)


@contextmanager
def _as_redis_error() -> Iterator[None]:
    """Convert RedisClusterException ("no node found") to ClusterError, which is a RedisError.

    Otherwise code that handles the loss of a single server would fail with a cluster.
    """
    try:
        yield
    except RedisClusterException as error:
        raise ClusterError(str(error)) from error


class _Pipeline(redis.cluster.ClusterPipeline):
    @_as_redis_error()
    def execute(self, *args: Any, **kwargs: Any) -> list[Any]:
        return super().execute(*args, **kwargs)


class _Cluster(redis.cluster.RedisCluster):
    @_as_redis_error()
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    @_as_redis_error()
    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        return super().execute_command(*args, **kwargs)  # type: ignore[no-untyped-call]

    def pipeline(self, *args: Any, **kwargs: Any) -> redis.cluster.ClusterPipeline:
        pipeline: redis.cluster.ClusterPipeline
        pipeline = super().pipeline(*args, **kwargs)  # type: ignore[no-untyped-call]
        # The library has no setting for the pipeline class.
        pipeline.__class__ = _Pipeline
        return pipeline


class _AsyncPipeline(redis.asyncio.cluster.ClusterPipeline):
    async def execute(self, *args: Any, **kwargs: Any) -> list[Any]:
        with _as_redis_error():
            return await super().execute(*args, **kwargs)


class _AsyncPubSub(redis.asyncio.cluster.ClusterPubSub):
    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        # The library looks up the topic's node before it has found the cluster.
        await self.cluster.initialize()
        return await super().execute_command(*args, **kwargs)


class _AsyncCluster(redis.asyncio.cluster.RedisCluster):
    async def initialize(self, *args: Any, **kwargs: Any) -> redis.asyncio.cluster.RedisCluster:
        with _as_redis_error():
            return await super().initialize(*args, **kwargs)

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        with _as_redis_error():
            return await super().execute_command(*args, **kwargs)

    def pipeline(self, *args: Any, **kwargs: Any) -> redis.asyncio.cluster.ClusterPipeline:
        pipeline = super().pipeline(*args, **kwargs)
        pipeline.__class__ = _AsyncPipeline  # type: ignore[type-abstract]
        return pipeline

    def pubsub(self, *args: Any, **kwargs: Any) -> redis.asyncio.cluster.ClusterPubSub:
        return _AsyncPubSub(self, *args, **kwargs)
