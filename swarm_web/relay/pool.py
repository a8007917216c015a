"""The pool: recent rollouts of all nodes of a season, in Redis.

Three bounds keep it honest and small: an age limit, a number of rollouts in all, and a number per
node, so that nobody can crowd the others out. Whatever is pushed out is gone: rollouts may be
lost, judge data may not.

A sender may declare rollouts informative; who prefers those draws from them first. What nodes
declare that were found to declare falsely is kept apart, for the check alone (`relay.claims`).

Keys of season `s`, all with an expiry, so that an ended season leaves nothing:
    relay:s:pool         sorted set of members `<node id>:<rollout id>`, scored by time
    relay:s:node:<id>    the same for one node
    relay:s:declared     the part of the pool that is declared informative
    relay:s:doubted      the part that was declared so by nodes whose declarations do not count
    relay:s:blob:<member>  the encoded rollout
    relay:s:given        hash of how many times rollouts of each node were delivered to others
    relay:s:lapsed       set of ids of the nodes whose declarations do not count
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import redis.asyncio

from swarm_protocol.messages import Preference

# KEYS: pool, node set, declared, doubted, lapsed. ARGV: now, age, pool size, per node, blob prefix,
# node id, then (member, blob, 1 if it is declared informative or else 0)...
# One script, so that two publishers never leave a member without its bounds.
_PUBLISH = """
local now, age, size, share, prefix = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]),
    tonumber(ARGV[4]), ARGV[5]
local claims = KEYS[3 + redis.call('SISMEMBER', KEYS[5], ARGV[6])]
local function drop(members)
    for _, member in ipairs(members) do
        redis.call('DEL', prefix .. member)
    end
    redis.call('ZREM', KEYS[3], unpack(members))
    redis.call('ZREM', KEYS[4], unpack(members))
end
local added = 0
for i = 7, #ARGV, 3 do
    if redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i]) == 1 then
        added = added + 1
        redis.call('ZADD', KEYS[2], now, ARGV[i])
        redis.call('SET', prefix .. ARGV[i], ARGV[i + 1], 'EX', age)
        if ARGV[i + 2] == '1' then
            redis.call('ZADD', claims, now, ARGV[i])
        end
    end
end
for i = 1, 4 do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - age)
end
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
for i = 1, 4 do
    redis.call('EXPIRE', KEYS[i], age)
end
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


def node_key(season_id: int, node_id: int) -> str:
    """Return the key of the sorted set that says what of one node the season's pool holds."""
    return f"relay:{season_id}:node:{node_id}"


def blob_prefix(season_id: int) -> str:
    """Return what the key of each rollout in the season's pool begins with; its member follows."""
    return f"relay:{season_id}:blob:"


def declared_key(season_id: int) -> str:
    """Return the key of the sorted set of the rollouts that are declared informative."""
    return f"relay:{season_id}:declared"


def doubted_key(season_id: int) -> str:
    """Return the key of the same for nodes whose declarations do not count."""
    return f"relay:{season_id}:doubted"


def lapsed_key(season_id: int) -> str:
    """Return the key of the set of nodes whose declarations do not count."""
    return f"relay:{season_id}:lapsed"


def given_key(season_id: int) -> str:
    """Return the key of the hash that says whose rollouts were delivered how many times."""
    return f"relay:{season_id}:given"


class Pool:
    """The pool of one season. Times are Unix seconds, passed in by the caller."""

    def __init__(self, client: redis.asyncio.Redis, *, season_id: int, bounds: Bounds) -> None:
        self._client = client
        self._bounds = bounds
        self._season_id = season_id
        self._key = pool_key(season_id)
        self._declared_key = declared_key(season_id)
        self._blobs = blob_prefix(season_id)
        self._given_key = given_key(season_id)
        self._publish = client.register_script(_PUBLISH)

    async def publish(
        self,
        node_id: int,
        rollouts: Mapping[str, bytes],
        *,
        informative: Collection[str] = (),
        now: float,
    ) -> int:
        """Add rollouts by id and return how many were new; ids already there change nothing.

        `informative` are the ids of those that the node declares so; others among them are ignored.
        """
        args: list[str | bytes | float] = [
            now,
            self._bounds.max_age_s,
            self._bounds.size,
            self._bounds.per_node,
            self._blobs,
            node_id,
        ]
        for rollout_id, blob in rollouts.items():
            args += [f"{node_id}:{rollout_id}", blob, int(rollout_id in informative)]
        keys = [
            *(self._key, node_key(self._season_id, node_id), self._declared_key),
            *(doubted_key(self._season_id), lapsed_key(self._season_id)),
        ]
        return int(await self._publish(keys=keys, args=args))

    async def sample(
        self,
        count: int,
        *,
        excluding: int,
        prefer: Preference = "any",
        now: float,
        random: Random,
    ) -> list[Pooled]:
        """Draw up to `count` different rollouts uniformly, none of node `excluding`.

        With a preference for `informative` ones, those that are declared so come first, drawn
        uniformly among themselves, and the others are drawn uniformly for what is left.
        """
        own = await self._count_own(excluding, now=now)
        drawn: dict[bytes, float] = {}
        for key in [self._declared_key, self._key] if prefer == "informative" else [self._key]:
            if len(drawn) == count:
                break
            # So many more always leave enough: of the second draw only those drop out that the
            # first one found, which are fewer than `count`, and all declared ones of others.
            reply: Any = await self._client.zrandmember(key, count + own, withscores=True)
            others = [
                (member, float(time))
                for member, time in read_pairs(reply)
                if not member.startswith(b"%d:" % excluding) and member not in drawn
            ]
            # Redis promises no order; so any prefix of the draw is uniform too.
            random.shuffle(others)
            drawn.update(others[: count - len(drawn)])
        return await self._fetch(drawn, now=now)

    async def _count_own(self, node_id: int, *, now: float) -> int:
        """Drop what is too old, and return how many rollouts of the node are left."""
        too_old = now - self._bounds.max_age_s
        async with self._client.pipeline(transaction=False) as pipeline:
            pipeline.zremrangebyscore(self._key, "-inf", too_old)
            pipeline.zremrangebyscore(self._declared_key, "-inf", too_old)
            pipeline.zcard(node_key(self._season_id, node_id))
            _, _, own = await pipeline.execute()
        return int(own)

    async def _fetch(self, drawn: Mapping[bytes, float], *, now: float) -> list[Pooled]:
        """Return the rollouts of these members, each with its time, that are still there."""
        if not drawn:
            return []
        blobs: list[Any] = await self._client.mget(
            [self._blobs.encode() + member for member in drawn]
        )
        return [
            Pooled(node_id=int(member.split(b":", 1)[0]), age_s=max(0.0, now - time), blob=blob)
            for (member, time), blob in zip(drawn.items(), blobs, strict=True)
            if blob is not None
        ]

    async def count_given(self, given: Mapping[int, int]) -> None:
        """Note how many rollouts of each node, by its id, were just delivered to another."""
        async with self._client.pipeline(transaction=False) as pipeline:
            for node_id, count in given.items():
                pipeline.hincrby(self._given_key, str(node_id), count)
            pipeline.expire(self._given_key, _GIVEN_AGE_S)
            await pipeline.execute()


def read_pairs(reply: list[Any]) -> list[tuple[bytes, bytes | float]]:
    """Read ZRANDMEMBER WITHSCORES, which is flat in RESP2 and nested in RESP3."""
    if reply and isinstance(reply[0], list):
        return [(member, score) for member, score in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
