"""Redis's clock, which processes on several machines use to compare times.

The machines' own clocks differ. With times from a slow clock, a node's earlier connection could
replace a later one, or a copy of a rollout could seem older than the original. Until Redis has
returned its time, this machine's clock is used.
"""

import time
from collections import deque
from typing import NamedTuple, cast

import redis.asyncio

from swarm_web.core.event_loops import one_per_loop
from swarm_web.core.store import async_redis

# The number of answers kept; the fastest one gives the most exact offset.
_MAX_ANSWERS = 16
# If an answer differs from the best one by more than their round trips and this, a clock was set
# or another server took over.
_CLOCK_CHANGE_NS = 50_000_000
_SECOND_NS = 1_000_000_000
# A script, because in a cluster its key determines which server answers.
_TIME = "return redis.call('TIME')"
_KEY = "store:clock"


class _Answer(NamedTuple):
    round_trip_ns: int
    ahead_ns: int


class StoreClock:
    """One event loop's estimate of Redis's clock, relative to the monotonic clock."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._time = client.register_script(_TIME)
        self._answers: deque[_Answer] = deque(maxlen=_MAX_ANSWERS)

    def now_ns(self) -> int:
        """Return Redis's time in nanoseconds since 1970."""
        if not self._answers:
            return time.time_ns()
        return time.monotonic_ns() + min(self._answers).ahead_ns

    def ahead_s(self) -> float:
        """Return how many seconds Redis's clock is ahead of this machine's; 0 before a `query`."""
        return (self.now_ns() - time.time_ns()) / _SECOND_NS

    async def query(self) -> None:
        """Request Redis's time and update the estimate. Raises the Redis client's errors."""
        sent_at = time.monotonic_ns()
        seconds, microseconds = cast("list[bytes]", await self._time([_KEY]))
        round_trip = time.monotonic_ns() - sent_at
        store_time = int(seconds) * _SECOND_NS + int(microseconds) * 1000
        answer = _Answer(round_trip, store_time - sent_at - round_trip // 2)
        if self._answers:
            best = min(self._answers)
            if (
                abs(best.ahead_ns - answer.ahead_ns)
                > best.round_trip_ns + round_trip + _CLOCK_CHANGE_NS
            ):
                self._answers.clear()
        self._answers.append(answer)


@one_per_loop
def store_clock() -> StoreClock:
    """Return the running event loop's estimate of Redis's clock."""
    return StoreClock(async_redis())
