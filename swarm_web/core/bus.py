"""Doorbells: notify all connected nodes or browsers that new data is available.

A doorbell is one Redis PUBLISH. Each web process subscribes once and passes doorbells to its own
sockets in a plain loop, because a channel layer's group send costs tens of times more per socket
and drops messages silently (docs/decisions/0003-doorbells.md). A doorbell may be lost, so all
announced data can also be requested.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable

import msgspec
import redis.exceptions
from django.db import transaction

from swarm_protocol.codec import encode
from swarm_web.core.event_loops import end_task, one_per_loop
from swarm_web.core.store import async_redis, sync_redis

logger = logging.getLogger(__name__)

NODES = "bus.nodes"
VIEWERS = "bus.viewers"
# Payload: a node's id. Its token or block changed, so check whether it is still admitted.
RECHECK_NODE = "bus.look_again"
# Payload: `[[node id, time in nanoseconds], ...]`, the nodes that connected to a web process.
ARRIVALS = "bus.arrivals"
_RETRY_S = 1.0

Listener = Callable[[str], None]


def ring(topic: str, payload: str = "") -> None:
    """Publish a doorbell: a message to all listeners of `topic` (`Switchboard.listen`).

    It is published after the surrounding transaction commits, or now if there is none. If Redis is
    unavailable, the doorbell is lost, and the error is logged.
    """
    transaction.on_commit(lambda: _publish(topic, payload))


def ring_nodes(message: msgspec.Struct) -> None:
    """Send one server message to every connected node, with `ring`."""
    ring(NODES, encode(message))


def _publish(topic: str, payload: str) -> None:
    try:
        sync_redis().publish(topic, payload)
    except redis.exceptions.RedisError:
        # The change itself is committed, and listeners can request it.
        logger.warning("could not publish a doorbell on %s", topic, exc_info=True)


class Switchboard:
    """An event loop's Redis subscription to all topics; passes each doorbell to its listeners.

    Listeners are called in this event loop and must not block.
    """

    def __init__(self) -> None:
        self._listeners: defaultdict[str, set[Listener]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    async def listen(self, topic: str, listener: Listener) -> None:
        """Call `listener(payload)` for each doorbell (see `ring`) of `topic`.

        The first call returns once the subscription was requested from Redis, or the request has
        failed. Later calls return at once, even while the subscription is lost. Failed attempts are
        repeated in the background.
        """
        self._listeners[topic].add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await self._ready.wait()

    def forget(self, topic: str, listener: Listener) -> None:
        """Stop calling `listener`."""
        self._listeners[topic].discard(listener)
        if not self._listeners[topic]:
            del self._listeners[topic]

    async def _run(self) -> None:
        """Pass doorbells to their listeners; subscribe again after a lost connection to Redis.

        Returns after a lost connection if no listeners are left.
        """
        while self._listeners:
            try:
                async with async_redis().pubsub() as pubsub:
                    await pubsub.psubscribe("bus.*")
                    self._ready.set()
                    async for message in pubsub.listen():
                        if message["type"] == "pmessage":
                            self._dispatch(message["channel"], message["data"])
            except redis.exceptions.RedisError:
                logger.warning("lost the subscription to doorbells, retrying", exc_info=True)
                # Sockets may be accepted during this time, because nodes can still send requests.
                self._ready.set()
                await asyncio.sleep(_RETRY_S)

    def _dispatch(self, channel: bytes, payload: bytes) -> None:
        topic = channel.decode(errors="replace")
        for listener in tuple(self._listeners.get(topic, ())):
            try:
                listener(payload.decode())
            except (ValueError, msgspec.DecodeError) as problem:
                # Another version of the site may use another format.
                logger.warning("could not read a doorbell of %s: %s", topic, problem)

    async def close(self) -> None:
        """Stop the subscription."""
        if self._task is not None:
            await end_task(self._task)


@one_per_loop
def switchboard() -> Switchboard:
    """Return the running event loop's switchboard."""
    return Switchboard()
