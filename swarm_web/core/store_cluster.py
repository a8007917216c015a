"""A cluster of Valkey (or Redis) as the store, behind the same commands as a single server.

A cluster takes a command only if all its keys are in one slot, and so with scripts and
transactions. Keys that are used together share a hash tag, the part in braces: `{alive}:worker`
and `{alive}:clock` are in the slot of `alive`. Pipelines without a transaction may hold keys of
many slots: the client sends each node its part (docs/decisions/0042-cluster-and-pooler.md).
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

# The async client's pool for each node does not wait for a free connection, it raises. More than a
# process uses at once, and so few that eight processes stay below a server's limit of 10,000.
_MOST_CONNECTIONS = 1024
# By default a command for a server that is gone is tried for three seconds, during which whoever
# waits for it is not served. A single server that is gone is an error at once.
_RETRIES = 1
_PAUSE_S = 0.05


def connect_cluster(url: str, *, connections: int) -> redis.Redis:
    """Return a client of the cluster that the node at `url` belongs to.

    It connects at once. Raises redis.exceptions.ClusterError when no node can be reached.
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
    """Return the same for the running event loop; it connects with the first command."""
    client = _AsyncCluster.from_url(
        url,
        max_connections=_MOST_CONNECTIONS,
        retry=Retry(ConstantBackoff(_PAUSE_S), _RETRIES),
    )
    return cast("redis.asyncio.Redis", client)


@contextmanager
def _as_redis_error() -> Iterator[None]:
    """Turn what the clients raise when they find no node into a RedisError, which it is not.

    Whoever goes on while a single server is away would fail while a cluster is.
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
        # The library has no setting for the class of its pipelines.
        pipeline.__class__ = _Pipeline
        return pipeline


class _AsyncPipeline(redis.asyncio.cluster.ClusterPipeline):
    async def execute(self, *args: Any, **kwargs: Any) -> list[Any]:
        with _as_redis_error():
            return await super().execute(*args, **kwargs)


class _AsyncPubSub(redis.asyncio.cluster.ClusterPubSub):
    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        # The library looks for the node of the topic before it has looked for the cluster.
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
