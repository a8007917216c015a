"""Counters of events such as refused requests, for `/metrics` and the status page.

One Redis hash holds all counters, so that all processes add to the same numbers. Each web process
collects counts in memory and adds them to the hash after a short pause; while Redis is unavailable,
they stay in memory.
"""

from collections import Counter, defaultdict
from typing import cast

from swarm_web.core.event_loops import one_per_loop
from swarm_web.core.store import async_redis, sync_redis
from swarm_web.core.write_behind import WriteBehind

# Refused requests and refused items of batches, by error code.
REFUSED = "refused"
# Handshakes of nodes, `accepted` or `denied`, and sockets closed as `stalled` or `unread`.
CONNECTIONS = "connections"
# Doorbells `dropped` because the socket was too slow.
DOORBELLS = "doorbells"
# What the relay lost: rollouts `not_replicated`, and batches of credits (`credits_dropped`).
RELAY = "relay"

_KEY = "counters"
_SEPARATOR = "/"
_PAUSE_S = 0.25


class PendingCounts:
    """Counts that were collected in an event loop and are not yet added to the Redis hash."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._writer = WriteBehind(self._write, pause_s=_PAUSE_S, name="counters")
        self.flush = self._writer.flush
        self.close = self._writer.close

    def add(self, field: str, by: int) -> None:
        """Add `by` to a counter; `field` is its field in the Redis hash, `<name>/<code>`."""
        self._counts[field] += by
        self._writer.wake()

    async def _write(self) -> None:
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            async with async_redis().pipeline(transaction=True) as batch:
                for field, by in counts.items():
                    batch.hincrby(_KEY, field, by)
                await batch.execute()
        except BaseException:  # also if the task is cancelled: the counts are not lost
            self._counts.update(counts)
            raise


@one_per_loop
def pending_counts() -> PendingCounts:
    """Return the running event loop's PendingCounts."""
    return PendingCounts()


def count(name: str, code: str, *, by: int = 1) -> None:
    """Add `by` to the counter `code` of the group `name`. Call this in an event loop."""
    pending_counts().add(f"{name}{_SEPARATOR}{code}", by)


def read_all() -> dict[str, dict[str, int]]:
    """Return all counters as `{name: {code: count}}`. Raises redis.exceptions.RedisError."""
    counters: defaultdict[str, dict[str, int]] = defaultdict(dict)
    # The client does not decode by default.
    stored = cast("dict[bytes, bytes]", sync_redis().hgetall(_KEY))
    for field, total in sorted(stored.items()):
        name, code = field.decode().split(_SEPARATOR, 1)
        counters[name][code] = int(total)
    return dict(counters)
