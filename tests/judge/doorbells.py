"""The rules of seasons that nodes are notified of."""

from collections.abc import Iterator
from contextlib import contextmanager

from swarm_protocol.codec import decode_from_server
from swarm_protocol.messages import SeasonInfo, SeasonState
from swarm_web.core import bus
from swarm_web.core.store import sync_redis


@contextmanager
def recorded_seasons() -> Iterator[list[SeasonInfo | None]]:
    """Yield a list which, after the block, has the rules of each `season.state` sent in it."""
    seasons: list[SeasonInfo | None] = []
    with sync_redis().pubsub() as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe(bus.NODES)
        received = subscription.listen()
        assert next(received)["type"] == "subscribe"
        yield seasons
        sync_redis().publish(bus.NODES, "the end")
        doorbells = iter(lambda: next(received)["data"].decode(), "the end")
        seasons += [
            message.season
            for message in map(decode_from_server, doorbells)
            if isinstance(message, SeasonState)
        ]
