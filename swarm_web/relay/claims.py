"""The declared rollouts of the pool, as the worker that checks them sees them.

It draws them as uniformly as those who ask for rollouts, so a node is checked in proportion to how
often it is drawn: whoever floods the pool with declarations is checked most. Nothing that a node
can time or count helps it to be passed over.

Keys of season `s` besides those of the pool:
    relay:s:checked      sorted set of the publications that were drawn, `<member>@<its time>`,
                         scored by the time of the draw
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import redis

from swarm_protocol.messages import ExternalRollout, Rollout
from swarm_web.relay.pool import (
    blob_prefix,
    declared_key,
    doubted_key,
    lapsed_key,
    node_key,
    read_pairs,
)

# The worker says it again every few seconds; a season that has ended is forgotten.
_LAPSED_AGE_S = 86_400

# KEYS: declared, doubted, node set. ARGV: age.
_DOUBT = """
for _, member in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    local at = redis.call('ZSCORE', KEYS[1], member)
    if at then
        redis.call('ZREM', KEYS[1], member)
        redis.call('ZADD', KEYS[2], at, member)
    end
end
redis.call('EXPIRE', KEYS[2], ARGV[1])
"""

_decoder = msgspec.json.Decoder(ExternalRollout)


@dataclass(frozen=True)
class Claim:
    """A rollout that a node declares informative."""

    node_id: int
    rollout: Rollout


class Claims:
    """The declared rollouts of one season. `max_age_s` is the pool's."""

    def __init__(self, client: redis.Redis, *, season_id: int, max_age_s: int) -> None:
        self._client = client
        self._season_id = season_id
        self._max_age_s = max_age_s
        self._checked_key = f"relay:{season_id}:checked"
        self._doubt = client.register_script(_DOUBT)

    def draw(self, most: int, *, now: float) -> list[Claim]:
        """Draw up to `most` declared rollouts that were not drawn here before.

        Up to as many more are of nodes whose declarations do not count, so that these can mend.
        What a node declared before the operator let its declarations count again is forgotten: it
        would count against the node anew.
        """
        doubted_at = doubted_key(self._season_id)
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.zrandmember(declared_key(self._season_id), most, withscores=True)
            pipeline.zrandmember(doubted_at, most, withscores=True)
            pipeline.smembers(lapsed_key(self._season_id))
            declared, doubted, lapsed = pipeline.execute()
        drawn, past = read_pairs(declared), []
        for member, time in read_pairs(doubted):
            if member.split(b":", 1)[0] in lapsed:
                drawn.append((member, time))
            else:
                past.append(member)
        if past:
            self._client.zrem(doubted_at, *past)
        return self._fetch(self._keep_new(drawn, now=now))

    def tell_lapsed(self, node_ids: Collection[int]) -> None:
        """Say whose declarations do not count from now on: those of these nodes and no others.

        What they have declared already is offered like undeclared rollouts.
        """
        key = lapsed_key(self._season_id)
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.delete(key)
            if node_ids:
                pipeline.sadd(key, *node_ids)
                pipeline.expire(key, _LAPSED_AGE_S)
            for node_id in node_ids:
                self._doubt(
                    keys=[
                        *(declared_key(self._season_id), doubted_key(self._season_id)),
                        node_key(self._season_id, node_id),
                    ],
                    args=[self._max_age_s],
                    client=pipeline,
                )
            pipeline.execute()

    def _keep_new(self, drawn: Sequence[tuple[bytes, bytes | float]], *, now: float) -> list[bytes]:
        """Return those that are drawn for the first time, and remember them as long as they last.

        A rollout stays in the pool for a while: checked again, one mistake would count many times.
        Its time tells it from another one that its node publishes later under the same id.
        """
        with self._client.pipeline(transaction=False) as pipeline:
            for member, time in drawn:
                publication = b"%s@%r" % (member, float(time))
                pipeline.zadd(self._checked_key, {publication: now}, nx=True)
            pipeline.zremrangebyscore(self._checked_key, "-inf", now - self._max_age_s)
            pipeline.expire(self._checked_key, self._max_age_s)
            *added, _, _ = pipeline.execute()
        return [member for (member, _), new in zip(drawn, added, strict=True) if new]

    def _fetch(self, members: list[bytes]) -> list[Claim]:
        if not members:
            return []
        prefix = blob_prefix(self._season_id).encode()
        blobs = cast("list[bytes | None]", self._client.mget([prefix + each for each in members]))
        return [
            Claim(int(member.split(b":", 1)[0]), _decoder.decode(blob).rollout)
            for member, blob in zip(members, blobs, strict=True)
            if blob is not None
        ]
