"""The pool: recent rollouts of all nodes of a season, in Redis.

Three bounds keep it honest and small: an age limit, a number of rollouts in all, and a number per
node, so that nobody can crowd the others out. Whatever is pushed out is gone: rollouts may be
lost, judge data may not.

Keys of season `s`, all with an expiry, so that an ended season leaves nothing:
    relay:s:pool         sorted set of members `<node id>:<rollout id>`, scored by time
    relay:s:node:<id>    the same for one node
    relay:s:blob:<member>  the encoded rollout
    relay:s:given        hash of how many times rollouts of each node were delivered to others
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import redis.asyncio

# KEYS: pool, node set. ARGV: now, age, pool size, per node, blob prefix, then (member, blob)...
# One script, so that two publishers never leave a member without its bounds.
_PUBLISH = """
local now, age, size, share, prefix = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]),
    tonumber(ARGV[4]), ARGV[5]
local function drop(members)
    for _, member in ipairs(members) do
        redis.call('DEL', prefix .. member)
    end
end
local added = 0
for i = 6, #ARGV, 2 do
    if redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i]) == 1 then
        added = added + 1
        redis.call('ZADD', KEYS[2], now, ARGV[i])
        redis.call('SET', prefix .. ARGV[i], ARGV[i + 1], 'EX', age)
    end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - age)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - age)
local over = redis.call('ZCARD', KEYS[2]) - share
if over > 0 then
    local oldest = redis.call('ZRANGE', KEYS[2], 0, over - 1)
    redis.call('ZREM', KEYS[1], unpack(oldest))
    redis.call('ZREMRANGEBYRANK', KEYS[2], 0, over - 1)
    drop(oldest)
end
over = redis.call('ZCARD', KEYS[1]) - size
if over > 0 then
    local oldest = redis.call('ZRANGE', KEYS[1], 0, over - 1)
    redis.call('ZREMRANGEBYRANK', KEYS[1], 0, over - 1)
    drop(oldest)
end
redis.call('EXPIRE', KEYS[1], age)
redis.call('EXPIRE', KEYS[2], age)
return added
"""


# A season may pause for long; its counts should still be there.
_GIVEN_AGE_S = 90 * 86_400


@dataclass(frozen=True)
class Bounds:
    """How much the pool holds: rollouts in all, rollouts per node, seconds."""

    size: int
    per_node: int
    max_age_s: int


@dataclass(frozen=True)
class Pooled:
    """A rollout as it lies in the pool: who published it, how long ago, and its encoding."""

    node_id: int
    age_s: float
    blob: bytes


def pool_key(season_id: int) -> str:
    """Return the key of the sorted set that says what the season's pool holds."""
    return f"relay:{season_id}:pool"


def given_key(season_id: int) -> str:
    """Return the key of the hash that says whose rollouts were delivered how many times."""
    return f"relay:{season_id}:given"


class Pool:
    """The pool of one season. Times are Unix seconds, passed in by the caller."""

    def __init__(self, client: redis.asyncio.Redis, *, season_id: int, bounds: Bounds) -> None:
        self._client = client
        self._bounds = bounds
        self._prefix = f"relay:{season_id}"
        self._key = pool_key(season_id)
        self._given_key = given_key(season_id)
        self._publish = client.register_script(_PUBLISH)

    async def publish(self, node_id: int, rollouts: dict[str, bytes], *, now: float) -> int:
        """Add rollouts by id and return how many were new; ids already there change nothing."""
        args: list[str | bytes | float] = [
            now,
            self._bounds.max_age_s,
            self._bounds.size,
            self._bounds.per_node,
            f"{self._prefix}:blob:",
        ]
        for rollout_id, blob in rollouts.items():
            args += [f"{node_id}:{rollout_id}", blob]
        keys = [self._key, self._node_key(node_id)]
        return int(await self._publish(keys=keys, args=args))

    async def sample(
        self, count: int, *, excluding: int, now: float, random: Random
    ) -> list[Pooled]:
        """Draw up to `count` different rollouts uniformly, none of node `excluding`.

        Drawing `count` members more than that node owns always leaves enough of the others; the
        shuffle makes any prefix of the draw uniform too, which Redis does not promise.
        """
        async with self._client.pipeline(transaction=False) as pipeline:
            pipeline.zremrangebyscore(self._key, "-inf", now - self._bounds.max_age_s)
            pipeline.zcard(self._node_key(excluding))
            _, own = await pipeline.execute()
        drawn: Any = await self._client.zrandmember(self._key, count + own, withscores=True)
        others = [
            (member, float(score))
            for member, score in _pairs(drawn)
            if not member.startswith(b"%d:" % excluding)
        ]
        random.shuffle(others)
        others = others[:count]
        if not others:
            return []
        blobs: list[Any] = await self._client.mget(
            [f"{self._prefix}:blob:".encode() + member for member, _ in others]
        )
        return [
            Pooled(node_id=int(member.split(b":", 1)[0]), age_s=max(0.0, now - time), blob=blob)
            for (member, time), blob in zip(others, blobs, strict=True)
            if blob is not None
        ]

    async def count_given(self, given: Mapping[int, int]) -> None:
        """Note how many rollouts of each node, by its id, were just delivered to another."""
        async with self._client.pipeline(transaction=False) as pipeline:
            for node_id, count in given.items():
                pipeline.hincrby(self._given_key, str(node_id), count)
            pipeline.expire(self._given_key, _GIVEN_AGE_S)
            await pipeline.execute()

    def _node_key(self, node_id: int) -> str:
        return f"{self._prefix}:node:{node_id}"


def _pairs(reply: list[Any]) -> list[tuple[bytes, bytes | float]]:
    """Read ZRANDMEMBER WITHSCORES, which is flat in RESP2 and nested in RESP3."""
    if reply and isinstance(reply[0], list):
        return [(member, score) for member, score in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
