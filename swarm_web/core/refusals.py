"""Recent refusals of each node by code, so that its page can show the last error and its fix.

Each node has two Redis keys: a hash with the counts, and the last refusal as JSON. Both expire a
week after the last refusal. Each web process collects refusals in memory and writes them to Redis
after a short pause; while Redis is unavailable, they stay in memory.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import msgspec
import redis.exceptions

from swarm_web.core.event_loops import one_per_loop
from swarm_web.core.store import async_redis, sync_redis
from swarm_web.core.write_behind import WriteBehind

logger = logging.getLogger(__name__)

_EXPIRY = timedelta(days=7)
_PAUSE_S = 0.25


class LastRefusal(msgspec.Struct, frozen=True):
    """A refusal's code and message, as sent to the node."""

    code: str
    message: str
    at: datetime


@dataclass(frozen=True)
class Refusals:
    """A node's recent refusals: their number by code, and the last one.

    Without recent refusals, `counts` is empty and `last` is None.
    """

    counts: dict[str, int]
    last: LastRefusal | None


class PendingRefusals:
    """Refusals of nodes' requests, collected in one event loop and not yet written to Redis."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, str]] = Counter()
        self._last: dict[int, LastRefusal] = {}
        self._writer = WriteBehind(self._write, pause_s=_PAUSE_S, name="refusals")
        self.flush = self._writer.flush
        self.close = self._writer.close

    def add(self, node_id: int, refusal: LastRefusal) -> None:
        """Record a refusal of a node."""
        self._counts[node_id, refusal.code] += 1
        self._last[node_id] = refusal
        self._writer.wake()

    async def _write(self) -> None:
        counts, self._counts = self._counts, Counter()
        last, self._last = self._last, {}
        if not counts:
            return
        try:
            async with async_redis().pipeline(transaction=False) as batch:
                for (node_id, code), number in counts.items():
                    batch.hincrby(_keys(node_id)[0], code, number)
                for node_id, refusal in last.items():
                    key, last_key = _keys(node_id)
                    batch.expire(key, _EXPIRY)
                    batch.set(last_key, msgspec.json.encode(refusal), ex=_EXPIRY)
                await batch.execute()
        except BaseException:
            self._counts.update(counts)
            self._last = last | self._last
            raise


@one_per_loop
def pending_refusals() -> PendingRefusals:
    """Return the running event loop's PendingRefusals."""
    return PendingRefusals()


def record_refusal(node_id: int, *, code: str, message: str, now: datetime) -> None:
    """Record a refusal of a node. Call this in an event loop."""
    pending_refusals().add(node_id, LastRefusal(code, message, now))


def read_refusals(node_id: int) -> Refusals | None:
    """Return a node's refusals; None while Redis is unavailable."""
    counts, last = _keys(node_id)
    try:
        # The client does not decode by default.
        stored = cast("dict[bytes, bytes]", sync_redis().hgetall(counts))
        last_refusal = cast("bytes | None", sync_redis().get(last))
    except redis.exceptions.RedisError:
        logger.warning("could not read the refusals of node %s", node_id, exc_info=True)
        return None
    return Refusals(
        counts={code.decode(): int(number) for code, number in sorted(stored.items())},
        last=msgspec.json.decode(last_refusal, type=LastRefusal) if last_refusal else None,
    )


def _keys(node_id: int) -> tuple[str, str]:
    return f"refused:{node_id}", f"refused:{node_id}:last"
